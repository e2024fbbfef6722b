"""The only text catalogue: every sentence a user may read, Chinese and English side by side.

A `Note` is a code with parameters; `say(note, lang)` turns it into words. Everything else in the package passes
notes around and never writes a sentence itself, so nothing can be told in one language only.

Families: W weights, N network and sources, I the picture file, F a face, M memory and engine, U usage,
`ui.*` labels of the page, `cli.*` lines of the command line. Each message gives the cause, then the next step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Lang: TypeAlias = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
class Note:
    """A message without words: `code` is a key of `CATALOGUE`, `params` fill its placeholders."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Code, parameters and both sentences, ready for JSON."""
        params = {k: v if isinstance(v, (int, float, bool)) or v is None else str(v) for k, v in self.params.items()}
        return {"code": self.code, "params": params, "zh": say(self, "zh"), "en": say(self, "en")}


def note(code: str, **params: Any) -> Note:
    """Short form of `Note(code, params)`; KeyError when the catalogue lacks `code`."""
    CATALOGUE[code]
    return Note(code, params)


def say(what: Note | str, lang: Lang = "en", **params: Any) -> str:
    """The sentence for a note, or for a bare code with keyword parameters, in `lang`."""
    code, values = (what, params) if isinstance(what, str) else (what.code, {**what.params, **params})
    zh, en = CATALOGUE[code]
    return (zh if lang == "zh" else en).format(**values)


def pick_language(tag: str | None) -> Lang:
    """`zh` for any Chinese language tag (`zh`, `zh-CN`, `zh_TW.UTF-8`, `zh-Hans-SG`…), else `en`."""
    return "zh" if (tag or "").strip().lower().startswith("zh") else "en"


CATALOGUE: dict[str, tuple[str, str]] = {
    # --- W: weights -------------------------------------------------------------------------------------------
    "W01": (
        "{file} 是空文件（0 字节）：下载被网络或代理拦截。请换镜像重新下载，或手动放入正确的文件。",
        "{file} is empty (0 bytes): the network or a proxy blocked the download. Switch mirror, or put the right file there.",
    ),
    "W02": (
        "{file} 是网页而不是权重：多半用了 /blob/ 链接。请改用 /resolve/ 直链重新下载。",
        "{file} is a web page, not weights: most likely a /blob/ link was used. Download it again from the /resolve/ link.",
    ),
    "W03": (
        "{file} 只是 git-lfs 指针，不含权重。请下载实际文件（git lfs pull，或用 /resolve/ 直链）。",
        "{file} is only a git-lfs pointer and holds no weights. Fetch the real file (git lfs pull, or the /resolve/ link).",
    ),
    "W04": (
        "{file} 与登记的摘要不符（应为 {expected}，实为 {found}），已拒绝使用。请删除后重新获取该文件。",
        "{file} does not match its recorded digest (expected {expected}, found {found}) and was refused. Delete it and fetch it again.",
    ),
    "W05": (
        "{file} 是 {found}，不是 {wanted}。请换用 {wanted} 的文件。",
        "{file} is {found}, not {wanted}. Use the file of {wanted} instead.",
    ),
    # --- M: memory and engine ---------------------------------------------------------------------------------
    "M01": (
        "内存或显存不足，放不下 {failed}；已自动改用 {plan} 继续，无需操作。若嫌慢，请关闭其他占用内存或显存的程序后重试。",
        "Out of memory with {failed}; continued with {plan}, nothing to do. If that is too slow, close other programs that use memory and try again.",
    ),
    "M02": (
        "{dtype} 的结果异常（出现无效数值或整张同色）；已用 float32 重算这张脸，无需操作。若每张都如此，请把精度设为 float32。",
        "The result in {dtype} was broken (invalid numbers or a single colour); this face was redone in float32, nothing to do. If every face is affected, set the precision to float32.",
    ),
    "M03": (
        "内存或显存不足，最省的方案（{plan}）也放不下。请关闭其他程序，或换用更小的分支后重试。",
        "Out of memory: even the smallest plan ({plan}) does not fit. Close other programs, or choose a smaller branch, and try again.",
    ),
    "M04": (
        "{failed} 运行出错（{reason}）；已自动改用 {plan} 继续。若反复出现，请更新显卡驱动，或把设备设为 cpu。",
        "Running with {failed} failed ({reason}); continued with {plan}. If this keeps happening, update the graphics driver or set the device to cpu.",
    ),
    "M05": (
        "用 float32 计算的结果仍然异常（出现无效数值或整张同色），这张脸未修复。权重可能已损坏：请校验权重文件。",
        "The result was broken even in float32 (invalid numbers or a single colour), so this face was not restored. The weights may be damaged: verify the weight file.",
    ),
    "M06": (
        "{plan} 运行出错（{reason}），且没有其他方案可换。请更新 PyTorch 与显卡驱动，或换一台设备重试。",
        "Running with {plan} failed ({reason}) and no other plan is left. Update PyTorch and the graphics driver, or try another device.",
    ),
}
