"""Training, export and distillation of GPEN networks; not part of the installed package.

python -m training.train --data FACES --output RUN      train or fine-tune
python -m training.export RUN/checkpoint.pt OUT.safetensors
python -m training.distill --teacher WEIGHTS --narrow 0.5 --data FACES --output RUN

docs/training.md says how many pictures, how long and what to expect.
"""
