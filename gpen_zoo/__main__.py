import sys

from gpen_zoo.cli import main

sys.exit(main())
