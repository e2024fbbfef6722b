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
        params = {k: v.code if isinstance(v, Note) else v for k, v in self.params.items()}
        params = {k: v if isinstance(v, (int, float, bool)) or v is None else str(v) for k, v in params.items()}
        return {"code": self.code, "params": params, "zh": say(self, "zh"), "en": say(self, "en")}


def note(code: str, **params: Any) -> Note:
    """Short form of `Note(code, params)`; KeyError when the catalogue lacks `code`."""
    CATALOGUE[code]
    return Note(code, params)


def say(what: Note | str, lang: Lang = "en", **params: Any) -> str:
    """The sentence for a note, or for a bare code with keyword parameters, in `lang`."""
    code, values = (what, params) if isinstance(what, str) else (what.code, {**what.params, **params})
    zh, en = CATALOGUE[code]
    # A parameter may be a note itself (what a file turned out to be) and then speaks the same language.
    values = {k: say(v, lang) if isinstance(v, Note) else v for k, v in values.items()}
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
    "W06": (
        "{file} 不完整：应有 {expected} 字节，实有 {found} 字节。请删除后重新下载。",
        "{file} is cut short: {expected} bytes expected, {found} found. Delete it and download it again.",
    ),
    "W07": (
        "{file} 的 safetensors 文件头声称有 {length} 字节，超出了文件本身。文件已损坏，请重新获取。",
        "{file}: its safetensors header claims {length} bytes, more than the file holds. It is damaged; get it again.",
    ),
    "W08": (
        "{file} 的 safetensors 文件头无法解析。文件已损坏，请重新获取。",
        "{file}: its safetensors header cannot be parsed. It is damaged; get it again.",
    ),
    "W09": (
        "{file} 的 safetensors 文件头中 {tensor} 出现了两次，这样的文件不可信。请换一个来源重新获取。",
        "{file}: its safetensors header lists {tensor} twice; such a file cannot be trusted. Get it from another source.",
    ),
    "W10": (
        "{file} 的 safetensors 文件头中 {tensor} 的位置与其他张量重叠、有空隙或越界，这样的文件不可信。请换一个来源重新获取。",
        "{file}: its safetensors header places {tensor} over another tensor, after a gap or outside the file; it cannot be trusted. Get it from another source.",
    ),
    "W11": (
        "{file} 中 {tensor} 的类型或形状不对（{found}）。请换一个来源重新获取。",
        "{file}: {tensor} has a wrong type or shape ({found}). Get the file from another source.",
    ),
    "W12": (
        "{file} 的张量与 {wanted} 对不上（{problem}）。请换用 {wanted} 的文件。",
        "The tensors of {file} do not match {wanted} ({problem}). Use the file of {wanted} instead.",
    ),
    "W13": (
        "{file} 可以读取，但里面不是本项目认识的网络。请用 gpen-zoo weights list 查看可用的权重。",
        "{file} is readable but holds no network known here. See gpen-zoo weights list for the weights that can be used.",
    ),
    "W14": (
        "{file} 是服务器返回的错误信息（{start}），不是权重。请换一个来源重新下载。",
        "{file} is an error message of the server ({start}), not weights. Download it again from another source.",
    ),
    "W15": (
        "{file} 不是任何已知的权重格式（开头为 {start}）。请核对是否拿错了文件。",
        "{file} is no known kind of weight file (it starts with {start}). Check that it is the right file.",
    ),
    "W16": (
        "权重目录 {folder} 中没有 {name}。需要作者的文件 {file}（SHA256：{sha256}），可从 {where} 获取。",
        "{name} is not in the zoo folder {folder}. It takes the author's file {file} (SHA256: {sha256}), available from {where}.",
    ),
    "W17": (
        "{file} 没有登记过的摘要，无法确认是否可信，未使用。请删除它并改用作者的原文件 {original}。",
        "{file} has no recorded digest, so nothing vouches for it and it was not used. Delete it and use the author's file {original} instead.",
    ),
    "W18": (
        "{file} 是 PyTorch 的 pickle 文件，不会被直接加载。请先转换为 safetensors。",
        "{file} is a PyTorch pickle and is never loaded as it is. Convert it to safetensors first.",
    ),
    "W19": (
        "没有名为 {name} 的权重。可用的名称：{known}。",
        "There is no weight called {name}. Known names: {known}.",
    ),
    "W20": (
        "{file} 是 ONNX 模型，本项目需要的是 PyTorch 权重（{wanted}）。请改取该文件。",
        "{file} is an ONNX model; PyTorch weights ({wanted}) are needed here. Get that file instead.",
    ),
    "W21": (
        "权重清单 {file}：条目 {entry} 缺少字段 {field}。请补上。",
        "Weight manifest {file}: entry {entry} lacks the field {field}. Add it.",
    ),
    "W22": (
        "权重清单 {file}：条目 {entry} 有不认识的字段 {field}。请删除或改正拼写。",
        "Weight manifest {file}: entry {entry} has an unknown field {field}. Remove it or correct its spelling.",
    ),
    "W23": (
        "权重清单 {file}：条目 {entry} 的字段 {field} 应为 {expected}，实为 {value}。请改正。",
        "Weight manifest {file}: in entry {entry} the field {field} must be {expected}, not {value}. Correct it.",
    ),
    "W24": (
        "权重清单 {file}：条目 {entry} 的字段 {field} 用了 {value}，与条目 {other} 重名。请改用别的名称。",
        "Weight manifest {file}: entry {entry} uses {value} as its {field}, which {other} already does. Choose another name.",
    ),
    "W25": (
        "无法读取权重清单 {file}：{problem}。请检查文件是否存在、是否为合法的 YAML。",
        "Cannot read the weight manifest {file}: {problem}. Check that the file exists and is valid YAML.",
    ),
    "W26": (
        "权重登记文件 {file} 已损坏，无法据此确认权重。请删除它，再重新安装权重。",
        "The weight record {file} is damaged, so no weight can be confirmed by it. Delete it and install the weights again.",
    ),
    "W27": (
        "{file} 转换自摘要为 {found} 的原文件，而清单要求 {expected}，已拒绝使用。请删除后重新获取。",
        "{file} was made from an original with digest {found}, while the manifest asks for {expected}; it was refused. Delete it and fetch it again.",
    ),
    "W28": (
        "{file} 是被截断的 zip（.pth）：末尾缺失，下载没有完成。请删除后重新下载。",
        "{file} is a zip (.pth) cut short: its end is missing, the download was not finished. Delete it and download it again.",
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
    # --- I: the picture file ----------------------------------------------------------------------------------
    "I01": (
        "无法识别为图片：这个文件实际是{kind}。请改选 JPEG、PNG、WebP 或 TIFF 格式的照片。",
        "This cannot be read as a picture: the file is {kind}. Choose a photo in JPEG, PNG, WebP or TIFF format.",
    ),
    "I02": (
        "图片文件不完整，只有上方 {pct}% 可用，其余部分是空的。能重新下载或重新复制的话，请换成完整的文件。",
        "The picture file is cut short: the upper {pct}% is usable, the rest is blank. Download or copy it again if you can.",
    ),
    "I03": (
        "图片为 {width}×{height}（{mp} 兆像素），超过上限 {limit} 兆像素。请先缩小图片、裁出有人脸的部分，或调高上限。",
        "The picture is {width}×{height} ({mp} megapixels), above the limit of {limit}. Shrink it, crop the part with the faces, or raise the limit.",
    ),
    "I04": (
        "这是 {format} 图片，读取它需要另装软件包 {package}。请运行 pip install {package}，或先把照片转成 JPEG。",
        "This is a {format} picture, and reading it takes the package {package}. Run pip install {package}, or convert the photo to JPEG first.",
    ),
    "I05": (
        "文件是 {format} 图片，但已损坏，无法解码（{reason}）。请重新下载或复制，或用看图软件打开后另存一份。",
        "The file is a {format} picture but damaged, and cannot be decoded ({reason}). Download or copy it again, or save it anew from a picture viewer.",
    ),
    "I06": (
        "图片为 {width}×{height}，有一边超过 {limit} 像素，已拒绝打开。请先裁剪或缩小。",
        "The picture is {width}×{height}; one side exceeds {limit} pixels, so it was not opened. Crop or shrink it first.",
    ),
    "I07": (
        "文件只有 {kb} KB，却声称有 {mp} 兆像素，不可能是照片（疑似解压炸弹），已拒绝打开。请确认文件来源。",
        "The file has {kb} KB and claims {mp} megapixels: that is no photo but most likely a decompression bomb, so it was not opened. Check where it came from.",
    ),
    "I08": (
        "原图每通道 {depth} 位，结果为 8 位。需要保留高位深时，请另存原文件。",
        "{depth}-bit in, 8-bit out: the result has 8 bits per channel. Keep the original file if you need its depth.",
    ),
    "I09": (
        "这是动图，共 {count} 帧，只处理了第 1 帧。需要其他帧时，请先单独导出那一帧。",
        "This is an animation of {count} frames; only frame 1 was used. Export another frame first if you want that one.",
    ),
    "I10": (
        "文件共有 {count} 页，只处理了第 1 页。需要其他页时，请先单独导出那一页。",
        "The file has {count} pages; only page 1 was used. Export another page first if you want that one.",
    ),
    "I11": (
        "这是 CMYK 图片且没有颜色配置文件，颜色为近似换算。如有偏差，请先用修图软件转成 sRGB。",
        "This is a CMYK picture without a colour profile, so its colours are approximate. Convert it to sRGB in an editor if they look off.",
    ),
    "I12": (
        "内嵌的颜色配置文件无法使用（{reason}），已按 sRGB 处理。如颜色有偏差，请先用修图软件转成 sRGB。",
        "The embedded colour profile cannot be used ({reason}); the picture was taken as sRGB. Convert it to sRGB in an editor if colours look off.",
    ),
    "I13": (
        "照片附带的拍摄信息（EXIF）已损坏，结果中不含这些信息。需要时请查看原文件。",
        "The photo's EXIF data is damaged and was left out of the result. See the original file if you need it.",
    ),
    "I14": (
        "图片文件不完整，只有 {pct}% 可用，未打开。请重新下载或复制完整的文件。",
        "The picture file is cut short: {pct}% is usable, so it was not opened. Download or copy the whole file again.",
    ),
    "I15": (
        "无法写出这张 {format} 图片，结果改存为无损的 PNG。需要其他格式时，请指定 JPEG、WebP 或 TIFF。",
        "This picture cannot be written as {format}, so the result is a lossless PNG. Ask for JPEG, WebP or TIFF if you want another format.",
    ),
    "I16": (
        "不能写出 {format} 格式，可选：{known}。请换一个格式或文件后缀。",
        "{format} cannot be written; choose from {known}. Pick another format or file suffix.",
    ),
    "I17": (
        "{format} 存不了透明度，透明部分已填成白色。想保留透明，请改存 PNG 或 WebP。",
        "{format} holds no transparency, so transparent parts became white. Save as PNG or WebP to keep them.",
    ),
    "I18": (
        "质量必须是 1 到 100 的整数，收到的是 {quality}。请改正。",
        "Quality must be a whole number from 1 to 100, not {quality}. Correct it.",
    ),
    "I19": (
        "找不到文件 {path}。请检查路径和文件名是否写对。",
        "There is no file {path}. Check the path and the spelling.",
    ),
    "I20": (
        "{path} 不是文件（可能是文件夹）。请指定一张图片。",
        "{path} is not a file (a folder, perhaps). Name one picture.",
    ),
    "I21": (
        "无法读取 {path}（{reason}）。请检查权限，或把文件复制到本机后再试。",
        "{path} cannot be read ({reason}). Check its permissions, or copy it to this machine first.",
    ),
    "I22": (
        "无法写入 {path}（{reason}）。请检查文件夹权限和剩余空间，或换个位置保存。",
        "{path} cannot be written ({reason}). Check the folder's permissions and free space, or save elsewhere.",
    ),
    "I23": (
        "内存不足，无法打开 {mp} 兆像素的图片。请先缩小图片，或关闭其他程序后再试。",
        "There is not enough memory to open {mp} megapixels. Shrink the picture, or close other programs first.",
    ),
    "I24": (
        "图片文件不完整：上方 {pct}% 有画面，但缺少最精细的细节。能重新下载或重新复制的话，请换成完整的文件。",
        "The picture file is cut short: the upper {pct}% is there but lacks its finest detail. Download or copy it again if you can.",
    ),
    "I25": (
        "文件有 {mb} MB，超过上限 {limit} MB。请先缩小图片，或另存为 JPEG。",
        "The file has {mb} MB, above the limit of {limit} MB. Shrink the picture, or save it as JPEG first.",
    ),
    "I26": (
        "颜色已从“{profile}”转换为 sRGB，结果也标为 sRGB。需要原色彩空间时，请用修图软件转回。",
        "Colours were converted from “{profile}” to sRGB, and the result is tagged sRGB. Convert it back in an editor if you need the old space.",
    ),
    "I27": (
        "{format} 的边长上限是 {limit} 像素，存不下 {width}×{height} 的图片。请改存 PNG 或 TIFF。",
        "{format} is limited to {limit} pixels a side and cannot hold {width}×{height}. Save as PNG or TIFF instead.",
    ),
    "I28": (
        "{format} 存不了透明度，结果改存为 PNG 以保留透明部分。不需要透明时，可指定 JPEG。",
        "{format} holds no transparency, so the result is a PNG that keeps it. Ask for JPEG if you do not need it.",
    ),
    "I29": (
        "文件末尾或校验和有损坏，但像素都读出来了。请留意画面中有无异常，能换一份完好的文件更好。",
        "The file's end or a checksum is damaged, but every pixel could be read. Look for faults in the picture, or use an intact copy.",
    ),
    "kind.empty": ("空文件（0 字节）", "empty (0 bytes)"),
    "kind.zeros": ("全为零的文件（下载或存储卡出错）", "nothing but zeros (a failed download or memory card)"),
    "kind.html": ("网页（HTML）", "a web page (HTML)"),
    "kind.xml": ("XML 文件", "an XML file"),
    "kind.svg": ("SVG 矢量图", "an SVG drawing"),
    "kind.text": ("文本文件", "a text file"),
    "kind.pdf": ("PDF 文档", "a PDF document"),
    "kind.postscript": ("PostScript 文档", "a PostScript document"),
    "kind.zip": ("ZIP 压缩包或 Office 文档", "a ZIP archive or Office document"),
    "kind.archive": ("压缩包", "an archive"),
    "kind.lfs": ("git-lfs 指针，不含图片本身", "a git-lfs pointer without the picture itself"),
    "kind.psd": ("Photoshop 文档（PSD）", "a Photoshop document (PSD)"),
    "kind.raw": ("相机原始文件（RAW）", "a camera raw file"),
    "kind.jxl": ("JPEG XL 图片", "a JPEG XL picture"),
    "kind.video": ("视频或音频", "video or audio"),
    "kind.program": ("程序文件", "a program"),
    "kind.unknown": ("未知的二进制文件", "an unknown binary file"),
    # --- F01-F09: what became of a face -----------------------------------------------------------------------
    "F01": (
        "没有找到人脸，照片原样返回。请试试转正或裁剪照片、换一张更大的扫描件；若整张图就是一张已裁好的脸，请用“已对齐”模式。",
        "No face was found, so the photo comes back unchanged. Try turning or cropping it, or a larger scan; if the picture is one cropped face already, use aligned mode.",
    ),
    "F02": (
        "已修复，但脸只有 {px} 像素，细节多为生成，未必像本人。有更大的原图时请改用原图。",
        "Restored, but the face is only {px} px: most detail is invented and may not be the person. Use a larger original if there is one.",
    ),
    "F03": (
        "未处理：脸只有 {px} 像素（至少需要 {least}），已看不出本人特征。请先找更大的原图。",
        "Left alone: the face is only {px} px (at least {least} needed), too little of the person is left. Look for a larger original.",
    ),
    "F04": ("已用 {branch} 修复。", "Restored with {branch}."),
    "F05": ("未选中，保持原样。勾选这张脸即可修复。", "Not selected, left as it was. Tick this face to restore it."),
    "F06": (
        "已修复。脸在照片中占 {side} 像素，超过模型的 {size} 像素，因此保留了原图更细的细节。安装更大的分支可修复得更充分。",
        "Restored. The face spans {side} px, more than the model's {size} px, so the photo's own finer detail was kept. A larger branch restores it more fully.",
    ),
    "F07": (
        "修复失败，这张脸保持原样。原因见“尝试记录”；可换用更小的分支或 CPU 再试。",
        "Restoring failed and this face was left as it was. The attempts tell why; try a smaller branch or the CPU.",
    ),
    "F08": ("强度为 0，保持原样。调高强度即可看到修复效果。", "Strength is 0, left as it was. Raise the strength to see the restoration."),
    "F09": (
        "没有编号为 {numbers} 的脸：共找到 {count} 张，编号从 1 开始。请改正编号。",
        "There is no face number {numbers}: {count} were found, counted from 1. Correct the numbers.",
    ),
    # --- B: which branch a face got ----------------------------------------------------------------------------
    "B01": ("{branch} 是当前唯一可用的分支。", "{branch} is the only branch in use."),
    "B02": (
        "{branch}（{size} 像素）是已安装分支中能容纳 {side} 像素人脸的最小一个。",
        "{branch} ({size} px) is the smallest installed branch that holds a face of {side} px.",
    ),
    "B03": (
        "{branch}（{size} 像素）是已安装的最大分支；人脸为 {side} 像素。",
        "{branch} ({size} px) is the largest installed branch; the face has {side} px.",
    ),
    # --- D: the demo weights -----------------------------------------------------------------------------------
    "D01": (
        "当前用的是随附的小型演示模型 {name}：只能去噪、轻度锐化，效果远不及官方权重。想要完整效果，请安装官方 GPEN 权重。",
        "This is {name}, the small demo model that ships with the project: it removes noise and sharpens mildly and is no match for the official weights. Install official GPEN weights for the full effect.",
    ),
    # --- U: usage ----------------------------------------------------------------------------------------------
    "U01": ("强度必须是 0 到 1 之间的数，收到的是 {value}。请改正。", "Strength must be a number from 0 to 1, not {value}. Correct it."),
    "U02": ("选项必须是 JSON 对象，可用字段：{fields}。", "Options must be a JSON object with any of the fields {fields}."),
    "U03": ("不认识的选项：{unknown}。可用字段：{fields}。", "Unknown option: {unknown}. Known fields: {fields}."),
    "U04": ("人脸编号必须是从 1 开始的整数列表，收到的是 {value}。请改正。", "Face numbers must be a list of whole numbers from 1, not {value}. Correct them."),
    "U05": (
        "strengths 必须是“编号: 强度”的对象，例如 {{\"2\": 0.5}}，收到的是 {value}。",
        "strengths must map face numbers to strengths, for example {{\"2\": 0.5}}, not {value}.",
    ),
    "U06": ("aligned 必须是 true 或 false，收到的是 {value}。", "aligned must be true or false, not {value}."),
    # --- F10…F39: finding faces -------------------------------------------------------------------------------
    "F10": (
        "照片边缘向外补边后才找到人脸：脸可能贴边或被裁切。若结果不理想，请换一张四周留有余地的照片。",
        "Faces were found only after the photo was given a border: they may touch the edge or be cut. If the result disappoints, use a photo with more room around them.",
    ),
    "F11": (
        "照片缩小后才找到人脸：脸可能太大、太近或模糊。若位置不准，请换一张拍得远一些的照片。",
        "Faces were found only after the photo was made smaller: they may be very large, close or blurred. If they are misplaced, use a photo taken from further away.",
    ),
    "F12": (
        "照片放大后才找到人脸：脸很小，修复出的细节多为生成。请尽量使用更大的原图。",
        "Faces were found only after the photo was enlarged: they are very small and most restored detail is invented. Use a larger original if there is one.",
    ),
    "F13": (
        "照片旋转 {degrees}° 后才找到人脸：照片可能放倒了。修复不受影响；如需摆正，请在看图软件中旋转。",
        "Faces were found only after the photo was turned by {degrees}°: it may lie on its side. The restoration is not affected; turn the photo in a viewer to have it upright.",
    ),
    "F14": (
        "提亮暗部后才找到人脸（仅用于检测，照片本身未改动）。若漏检，请先调亮照片再试。",
        "Faces were found only after the dark parts were lifted (for detection only, the photo is unchanged). If some are missing, brighten the photo first and try again.",
    ),
    "F15": (
        "共找到 {found} 张人脸，只保留最大的 {most} 张。要处理其余的脸，请把照片裁成几部分。",
        "{found} faces were found and the largest {most} kept. To have the others restored too, cut the photo into parts.",
    ),
    "F20": (
        "缺少人脸检测模型：软件包 {package} 未安装，或其中没有 {file}。请运行 pip install {package}。",
        "The face detector is missing: the package {package} is not installed or lacks {file}. Run pip install {package}.",
    ),
    "F21": (
        "人脸检测模型 {file} 与经过测试的版本不符（应为 {expected}，实为 {found}），已拒绝使用。请重新安装软件包 {package} 1.5.0。",
        "The face detector {file} is not the tested one (expected {expected}, found {found}) and was refused. Install the package {package} 1.5.0 again.",
    ),
    # --- S: the state of the page and the service --------------------------------------------------------------
    "S01": ("请先选择一张照片，再点“修复”。", "Choose a photo first, then press Restore."),
    "S02": ("这次结果已从服务器清除（停留太久或同时使用的人太多）。请重新点“修复”。", "This result has been cleared from the server (too long ago, or too many visitors). Press Restore again."),
    "S03": ("出现未预料的错误（{kind}），照片没有改动。请重试；若再次出现，请把服务器日志交给维护者。", "An unexpected error occurred ({kind}); the photo was not changed. Try again; if it comes back, give the server's log to the maintainers."),
    # --- ui: labels of the page ---------------------------------------------------------------------------------
    "ui.title": ("GPEN Zoo · 老照片人脸修复", "GPEN Zoo · restore the faces in a photo"),
    "ui.lead": ("放入一张老旧、模糊或压缩严重的照片，取回整张照片，每张脸都已修复。", "Drop an old, blurred or badly compressed photo; get the whole photo back with every face restored."),
    "ui.photo": ("照片", "Photo"),
    "ui.restore": ("修复", "Restore"),
    "ui.strength": ("强度", "Strength"),
    "ui.strength_info": ("0 为原图，1 为模型的全部效果；调节时立即生效，无需重新计算。", "0 is the photo, 1 all of the model; takes effect at once, without running the model again."),
    "ui.aligned": ("整张图就是一张已对齐的脸", "The whole picture is one aligned face"),
    "ui.aligned_info": ("仅用于已按人脸裁好的方图。", "Only for square pictures already cropped to a face."),
    "ui.slider": ("修复前 / 修复后", "Before / after"),
    "ui.faces": ("人脸（取消勾选即恢复原样）", "Faces (untick to leave one as it was)"),
    "ui.pairs": ("每张脸：左为修复前，右为修复后", "Each face: before on the left, after on the right"),
    "ui.download": ("下载修复后的照片", "Download the restored photo"),
    "ui.report": ("报告（JSON）", "Report (JSON)"),
    "ui.examples": ("示例照片", "Example photos"),
    "ui.weights": ("正在使用的权重与许可", "Weights in use and their licence"),
    "ui.privacy": ("照片只在这台服务器上处理；关闭页面后结果即删除，上传的文件最多保留 2 小时。", "Photos are processed on this server only; results go when you close the page, uploads after 2 hours at the latest."),
    "ui.idle": ("选好照片后点“修复”。", "Choose a photo and press Restore."),
    "ui.summary": ("找到 {found} 张脸，修复了 {restored} 张，用时 {seconds} 秒。", "{found} faces found, {restored} restored, {seconds} s."),
    "ui.stage_read": ("正在读取照片", "Reading the photo"),
    "ui.stage_faces": ("正在查找人脸", "Looking for faces"),
    "ui.stage_restore": ("正在修复人脸：已完成 {done}/{total}", "Restoring faces: {done} of {total} done"),
    "ui.stage_paste": ("正在放回照片", "Putting the faces back"),
    "ui.face": ("{index}：{verdict}。{reason}", "{index}: {verdict}. {reason}"),
    "ui.verdict_restored": ("已修复", "restored"),
    "ui.verdict_skipped": ("未处理", "left alone"),
    "ui.verdict_failed": ("失败", "failed"),
    "ui.weight": ("{name}：{size} 像素分支，{mb} MB。", "{name}: branch of {size} px, {mb} MB."),
    "ui.licence": ("许可：{text}", "Licence: {text}"),
}
