"""The only text catalogue: every sentence a user may read, Chinese and English side by side.

A `Note` is a code with parameters; `say(note, lang)` turns it into words. Everything else in the package passes
notes around and never writes a sentence itself, so nothing can be told in one language only.

Families: W weights, N network and sources, I the picture file, F a face, M memory and engine, P other tasks than
restoring, U usage, `ui.*` labels of the page, `cli.*` lines of the command line. Each message gives the cause, then
the next step.
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
        params = {k: _codes(v) for k, v in self.params.items()}
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
    # A parameter may be a note itself (what a file turned out to be), or several, and then speaks the same language.
    values = {k: _spoken(v, lang) for k, v in values.items()}
    return (zh if lang == "zh" else en).format(**values)


def _codes(value: Any) -> Any:
    if isinstance(value, tuple) and value and all(isinstance(part, Note) for part in value):
        return ", ".join(part.code for part in value)
    return value.code if isinstance(value, Note) else value


def _spoken(value: Any, lang: Lang) -> Any:
    if isinstance(value, Note):
        return say(value, lang)
    if isinstance(value, tuple) and value and all(isinstance(part, Note) for part in value):
        return " ".join(f"({number}) {say(part, lang)}" for number, part in enumerate(value, 1))
    return value


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
    "W47": (
        "{name} 的用途是“{found}”，不是“{wanted}”。请换用别的权重（gpen-zoo weights list 列出全部）。",
        "{name} is for another task ({found}, not {wanted}). Choose other weights; gpen-zoo weights list shows all.",
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
        "权重目录 {folder} 中没有 {name}。请运行 gpen-zoo weights download {name}{accept}；也可以自行取得作者的文件 {file}（SHA256：{sha256}，来源：{where}），放入该目录。",
        "{name} is not in the zoo folder {folder}. Run gpen-zoo weights download {name}{accept}, or get the author's file {file} yourself (SHA256: {sha256}, from: {where}) and put it into that folder.",
    ),
    "W17": (
        "{file} 没有登记过的摘要，无法确认是否可信，未使用。请用 gpen-zoo weights download 重新获取，或把作者的原文件 {original} 放入该目录。",
        "{file} has no recorded digest, so nothing vouches for it and it was not used. Fetch it anew with gpen-zoo weights download, or put the author's file {original} into the folder.",
    ),
    "W18": (
        "{file} 是 PyTorch 的 pickle 文件，不会被直接加载。请用 gpen-zoo weights adopt 把它转换为 safetensors。",
        "{file} is a PyTorch pickle and is never loaded as it is. Convert it to safetensors with gpen-zoo weights adopt.",
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
    "W30": (
        "{file} 里除了数据还有可执行的内容，已拒绝打开（只接受纯权重）。请换用作者的原文件。",
        "{file} holds more than data (a pickle that would run code) and was not opened. Use the author's original file.",
    ),
    "W31": (
        "{file} 已损坏，无法读取（{reason}）。请删除后重新获取。",
        "{file} is damaged and cannot be read ({reason}). Delete it and get it again.",
    ),
    "W32": (
        "{file} 的 {tensor} 超出 float16 的范围，无法制作半精度副本。请保留 float32。",
        "{tensor} of {file} exceeds the range of float16, so no half-size copy can be made. Keep float32.",
    ),
    "W34": (
        "{file} 就在权重目录里，但清单没有登记 {name} 的摘要，无法确认它。若信任这个文件，请运行 gpen-zoo weights adopt {file} --name {name} --accept-unpinned。",
        "{file} lies in the zoo folder, but the manifest has no digest for {name} to confirm it. If you trust the file, run gpen-zoo weights adopt {file} --name {name} --accept-unpinned.",
    ),
    "W35": (
        "{name} 校验通过：{bytes} 字节，SHA256 {sha256}。",
        "{name} is sound: {bytes} bytes, SHA256 {sha256}.",
    ),
    "W36": (
        "{file} 不是登记过的 {name}（摘要 {found}，应为 {expected}）。请改用摘要相符的文件；若要改用新版本，请先运行 gpen-zoo weights remove {name} --forget。",
        "{file} is not the recorded {name} (digest {found}, expected {expected}). Use the file with that digest; to accept another version, run gpen-zoo weights remove {name} --forget first.",
    ),
    "W37": (
        "没有收入：{file} 与任何登记过的摘要都不符。{what}",
        "Not adopted: {file} has none of the recorded digests. {what}",
    ),
    "W38": (
        "{name} 随项目附带，不能移除。",
        "{name} ships with the project and cannot be removed.",
    ),
    "W39": (
        "{file} 不是 {name}：清单登记的摘要是 {expected}，它的是 {found}。请改用原文件；若是自己训练的权重，请在自己的清单（GPEN_ZOO_MANIFEST）里给它另起名称。",
        "{file} is not {name}: the manifest records digest {expected}, this one has {found}. Use the original file; weights you trained yourself get a name of their own in a manifest of yours (GPEN_ZOO_MANIFEST).",
    ),
    "W40": (
        "{file} 正是 {name}（摘要相符）。可运行 gpen-zoo weights adopt 收入权重目录。",
        "{file} is {name} (the digest matches). Run gpen-zoo weights adopt to take it into the zoo folder.",
    ),
    "W41": (
        "{file} 的张量属于 {found}，但摘要没有登记过。若信任这个文件，请运行 gpen-zoo weights adopt 并指定 --name 和 --accept-unpinned。",
        "The tensors of {file} are those of {found}, but its digest is not on record. If you trust it, run gpen-zoo weights adopt with --name and --accept-unpinned.",
    ),
    "W42": (
        "{file} 是训练存档，其中的 g_ema 是 {found}。收入时只取 g_ema：请运行 gpen-zoo weights adopt 并指定 --name 和 --accept-unpinned。",
        "{file} is a training checkpoint; its g_ema is {found}. Adopting takes g_ema only: run gpen-zoo weights adopt with --name and --accept-unpinned.",
    ),
    "W43": (
        "{file} 是判别器，只用于继续训练，不能修复照片。请改取不带 -D 的文件。",
        "{file} is a discriminator, good for further training only; it restores nothing. Get the file without -D instead.",
    ),
    "W44": (
        "{file} 是 {found} 的权重，不是 GPEN。修复人脸请改用 GPEN-BFR-*.pth。",
        "{file} holds weights of {found}, not of GPEN. To restore faces use a GPEN-BFR-*.pth instead.",
    ),
    "W45": (
        "{file} 是 {name} 的 ONNX 导出，本项目需要 PyTorch 的 .pth 原文件。请改取同名的 .pth。",
        "{file} is the ONNX export of {name}; the original PyTorch .pth is needed here. Get the .pth of that name instead.",
    ),
    "W46": (
        "{name} 没有登记记录，没有可写入清单的摘要。请先下载或收入它。",
        "{name} has no record, so there is no digest to pin. Download or adopt it first.",
    ),
    "W50": (
        "{name} 的 safetensors 版本，供 gpen_zoo 使用；由作者的原文件转换而来，数值精度为 {dtype}。\n\n- 文件：`{file}`，SHA256 `{sha256}`\n- 原文件：`{original}`，SHA256 `{original_sha256}`\n- 来源：{source}（{date}）\n- 许可：{licence}\n\n使用前请自行核对摘要；把同目录的 weights_manifest.yaml 中的 OWNER 改为你的账号名，再用 GPEN_ZOO_MANIFEST 指向它即可。",
        "{name} as safetensors for gpen_zoo, converted from the author's file; values are {dtype}.\n\n- File: `{file}`, SHA256 `{sha256}`\n- Original: `{original}`, SHA256 `{original_sha256}`\n- Source: {source} ({date})\n- Licence: {licence}\n\nCheck the digest before use. To use this repository, replace OWNER in the weights_manifest.yaml beside this card by the account and point GPEN_ZOO_MANIFEST at it.",
    ),
    # --- N: network and sources -------------------------------------------------------------------------------
    "N01": (
        "连接 {host} 超时。请检查网络或代理；在中国大陆可设置 HF_ENDPOINT 为镜像地址后重试。",
        "{host} did not answer in time. Check the network or proxy; setting HF_ENDPOINT to a mirror may help. Then try again.",
    ),
    "N17": (
        "无法连接 {host}（{reason}）。请检查网络、代理和域名解析；在中国大陆可设置 HF_ENDPOINT 为镜像地址后重试。",
        "{host} cannot be reached ({reason}). Check the network, the proxy and name resolution; setting HF_ENDPOINT to a mirror may help. Then try again.",
    ),
    "N03": (
        "{host} 拒绝了请求（HTTP {status}）。请稍后重试，或用 --source 换一个来源。",
        "{host} refused the request (HTTP {status}). Try later, or choose another source with --source.",
    ),
    "N04": (
        "与 {host} 的传输中断（{reason}）。已下载的部分会保留，重试时自动续传。",
        "The transfer from {host} broke off ({reason}). What arrived is kept; trying again continues from there.",
    ),
    "N05": (
        "从 {host} 下载已超过 {seconds} 秒的时限，先停下。已下载的部分会保留，重试时自动续传。",
        "Downloading from {host} passed its limit of {seconds} s and was stopped. What arrived is kept; trying again continues from there.",
    ),
    "N06": (
        "{host} 给出的文件大小不对（应为 {expected} 字节，实为 {found}），未下载。请换一个来源。",
        "{host} offers a file of the wrong size ({expected} bytes expected, {found} offered); it was not downloaded. Use another source.",
    ),
    "N07": (
        "{host} 返回的是网页而不是文件，可能是需要登录的网络（如酒店、校园网）或失效的链接。请先在浏览器登录网络，或换一个来源。",
        "{host} answered with a web page instead of the file: a network that wants a login, or a dead link. Log in to the network in a browser, or use another source.",
    ),
    "N08": (
        "{folder} 所在磁盘空间不足：需要约 {need} MB，剩余 {free} MB。请腾出空间，或用 GPEN_ZOO_HOME 换一个目录，再重试（会续传）。",
        "The disk of {folder} is too full: about {need} MB needed, {free} MB free. Free some space or choose another folder with GPEN_ZOO_HOME, then try again (it continues).",
    ),
    "N09": (
        "{host} 把下载转到了不允许的地址（{target}），已停止。请换一个来源。",
        "{host} redirected the download to an address that is not allowed ({target}); stopped. Use another source.",
    ),
    "N10": (
        "已取消（{file}）。已下载的部分会保留，再次下载时自动续传。",
        "Cancelled ({file}). What arrived is kept; downloading again continues from there.",
    ),
    "N13": (
        "另一个进程（{host} 上的 {pid}）一直占用 {file}，等待超时。请等它结束，或结束该进程后重试。",
        "Another process ({pid} on {host}) keeps {file} locked; gave up waiting. Let it finish or end it, then try again.",
    ),
    "N02": (
        "当前为离线模式（HF_HUB_OFFLINE），而 {folder} 中没有 {name}。请把作者的文件 {file}（SHA256：{sha256}）放入该目录，或取消离线模式后重试。",
        "Offline mode is on (HF_HUB_OFFLINE) and {name} is not in {folder}. Put the author's file {file} (SHA256: {sha256}) there, or leave offline mode and try again.",
    ),
    "N11": (
        "清单没有登记 {file} 的摘要，{host} 也不提供摘要，无法确认内容，未下载。若信任该来源，请加 --accept-unpinned（页面上勾选“接受未登记摘要的文件”）。",
        "The manifest has no digest for {file} and {host} lists none, so nothing can confirm its content; it was not downloaded. If you trust this source, add --accept-unpinned (on the page: tick “accept a file without a recorded digest”).",
    ),
    "N12": (
        "{host} 上的 {file} 是另一个文件（摘要 {found}，应为 {expected}），未下载。请换一个来源。",
        "{host} has another file under the name {file} (digest {found}, expected {expected}); it was not downloaded. Use another source.",
    ),
    "N14": (
        "本地来源 {file} 不存在。请改正路径。",
        "The local source {file} does not exist. Correct the path.",
    ),
    "N15": (
        "{name} 没有与“{wanted}”相符的来源。请改用其中之一：{known}。",
        "{name} has no source that matches “{wanted}”. Use one of these: {known}.",
    ),
    "N16": (
        "{host} 送来的 {file} 内容不对（摘要 {found}，应为 {expected}），已拒绝并移到 {folder}。请换一个来源。",
        "{host} sent wrong bytes for {file} (digest {found}, expected {expected}); they were refused and moved to {folder}. Use another source.",
    ),
    "N20": ("{source}：{why}", "{source}: {why}"),
    "N21": (
        "无法获取 {name}，所有来源都失败了。{tried} 也可以从别处取得 {file}（SHA256：{sha256}），放入 {folder} 后重试。",
        "{name} could not be fetched; every source failed. {tried} You can also get {file} (SHA256: {sha256}) elsewhere, put it into {folder} and try again.",
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
        "图片文件不完整，只有 {pct}% 可用，其余部分是空的。能重新下载或重新复制的话，请换成完整的文件。",
        "The picture file is cut short: {pct}% of it is usable, the rest is blank. Download or copy it again if you can.",
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
        "图片文件不完整：{pct}% 有画面，但缺少最精细的细节。能重新下载或重新复制的话，请换成完整的文件。",
        "The picture file is cut short: {pct}% of the picture is there but lacks its finest detail. Download or copy it again if you can.",
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
    "B30": (
        "用权重放大背景需要 basicsr，但它无法导入（{reason}）。请在 Python 3.12 或更早的版本中运行 pip install basicsr，或把背景设为 lanczos。",
        "Enlarging the background with weights takes basicsr, which cannot be imported ({reason}). Run pip install basicsr on Python 3.12 or earlier, or set the background to lanczos.",
    ),
    "B31": (
        "照片已用 Lanczos 插值放大到 {scale} 倍：没有安装 basicsr，不能用权重放大背景。请在 Python 3.12 或更早的版本中安装它。",
        "The photo was enlarged ×{scale} by Lanczos interpolation: basicsr, which weights for the background need, is not installed. Install it on Python 3.12 or earlier.",
    ),
    "I30": (
        "放大到 {scale} 倍后为 {width}×{height}（{mp} 兆像素），超过上限 {limit} 兆像素。请选较小的倍数，或先缩小、裁剪照片。",
        "Enlarged ×{scale} the photo would be {width}×{height} ({mp} megapixels), above the limit of {limit}. Choose a smaller scale, or shrink or crop the photo first.",
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
        "没有找到人脸，因此没有处理任何人脸。请试试转正或裁剪照片、换一张更大的扫描件；若整张图就是一张已裁好的脸，请用“已对齐”模式。",
        "No face was found, so none was worked on. Try turning or cropping it, or a larger scan; if the picture is one cropped face already, use aligned mode.",
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
    "F05": (
        "未选中，保持原样。把它加入所选的脸即可修复。",
        "Not selected, left as it was. Add it to the selected faces to restore it.",
    ),
    "F06": (
        "已修复。脸在结果中占 {side} 像素，超过模型的 {size} 像素，因此保留了原图更细的细节。安装更大的分支可修复得更充分。",
        "Restored. The face spans {side} px of the result, more than the model's {size} px, so the photo's own finer detail was kept. A larger branch restores it more fully.",
    ),
    "F07": (
        "修复失败，这张脸保持原样。原因见“尝试记录”；可换用更小的分支或 CPU 再试。",
        "Restoring failed and this face was left as it was. The attempts tell why; try a smaller branch or the CPU.",
    ),
    "F08": (
        "强度为 0，保持原样。调高强度即可看到修复效果。",
        "Strength is 0, left as it was. Raise the strength to see the restoration.",
    ),
    "F09": (
        "没有编号为 {numbers} 的脸：共找到 {count} 张，编号从 1 开始。请改正编号。",
        "There is no face number {numbers} (faces found: {count}, counted from 1). Correct the numbers.",
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
    "B20": (
        "照片已用 Lanczos 插值放大到 {scale} 倍：没有安装可用的背景放大权重。要更清晰的背景，请在网页的“权重”页下载 {name}，或运行 gpen-zoo weights download {name}。",
        "The photo was enlarged ×{scale} by Lanczos interpolation, since no weights for the background can be used. For a sharper background download {name} on the page's Weights tab, or run gpen-zoo weights download {name}.",
    ),
    "B21": (
        "背景已用 {name} 处理（{scale} 倍）。",
        "The background was made with {name} (×{scale}).",
    ),
    "B22": (
        "照片已按要求用 Lanczos 插值放大到 {scale} 倍。",
        "The photo was enlarged ×{scale} by Lanczos interpolation, as asked.",
    ),
    "B23": (
        "用 {name} 处理背景预计约需 {seconds} 秒（{tiles} 块，按本机实测推算）。嫌慢可随时停止，改用 lanczos。",
        "Making the background with {name} will take about {seconds} s ({tiles} tiles, reckoned from one measured here). It can be stopped at any time; lanczos is quick.",
    ),
    "B24": (
        "内存或显存不足，用 {name} 处理背景时最省的方案（{plan}）也放不下。请关闭其他程序，选较小的倍数，或把背景设为 lanczos。",
        "Out of memory: even the smallest plan ({plan}) for the background with {name} does not fit. Close other programs, choose a smaller scale, or set the background to lanczos.",
    ),
    "B25": (
        "背景中有分块用 {dtype} 算出了无效数值，已用 float32 重算，无需操作。若每张都如此，请把精度设为 float32。",
        "Part of the background came out with invalid numbers in {dtype} and was redone in float32, nothing to do. If every photo is affected, set the precision to float32.",
    ),
    "B26": (
        "{name} 用 float32 也算出了无效数值，权重可能已损坏。请运行 gpen-zoo weights verify {name}，或把背景设为 lanczos。",
        "{name} gives invalid numbers even in float32, so the weights may be damaged. Run gpen-zoo weights verify {name}, or set the background to lanczos.",
    ),
    "B27": (
        "用 {name} 处理背景时，{plan} 运行出错（{reason}），且没有其他方案可换。请更新 PyTorch 与显卡驱动，或把背景设为 lanczos。",
        "Making the background with {name}, {plan} failed ({reason}) and no other plan is left. Update PyTorch and the graphics driver, or set the background to lanczos.",
    ),
    "B28": (
        "背景的处理方式必须是 auto、lanczos 或某个放大权重的名称，收到的是 {value}。请改正。",
        "The background must be auto, lanczos or the name of weights that enlarge, not {value}. Correct it.",
    ),
    # --- D: the demo weights -----------------------------------------------------------------------------------
    "D01": (
        "当前用的是随附的小型演示模型 {name}：分辨率 256 像素，训练用的人脸不多；模糊严重时，画出的五官可能与本人不符。想要完整效果，请安装官方 GPEN 权重。",
        "This is {name}, the small demo model that ships with the project: 256 px, trained on few faces. Where a photo is very blurred, the features it draws may not be the person's. Install official GPEN weights for the full effect.",
    ),
    # --- P: colouring, filling in, faces from label maps -------------------------------------------------------
    "P01": (
        "这张照片本来就有颜色；颜色已换成网络给出的。若只想上一点色，请调低颜色浓度。",
        "This photo had colours already; they were replaced by the network's. For less of them, lower the strength of colour.",
    ),
    "P10": (
        "这张图不像蒙版：{pct}% 的像素既不黑也不白。蒙版应为黑底、要补全处涂白；请另选一张图。",
        "This picture is no mask: {pct}% of its pixels are neither black nor white. A mask is black, with white where to fill in; choose another picture.",
    ),
    "P11": (
        "没有标出要补全的地方。请在照片上涂抹要补全的地方；用蒙版文件时，把这些地方涂成白色。",
        "Nothing is marked to be filled in. Paint over the spots; in a mask file, make them white.",
    ),
    "P12": (
        "整张照片都被标为要补全，没有留下可参照的内容。请只涂要补全的部分；若黑白弄反了，请把蒙版反相。",
        "The whole photo is marked, which leaves nothing to go by. Paint only what is to be filled in; if black and white are swapped, invert the mask.",
    ),
    "P13": (
        "标出的部分有 {pct}% 不在任何人脸附近，未作改动。若要全部补全，请把范围设为 whole 或 both。",
        "{pct}% of what is marked lies near no face and was left alone. To have all of it filled in, set the area to whole or both.",
    ),
    "P14": (
        "文件夹 {folder} 里没有名为 {stem} 的蒙版。请给每张照片放一个同名（后缀不限）的蒙版，或用 --mask 指定一个文件。",
        "The folder {folder} has no mask named {stem}. Give every photo a mask of the same name (any suffix), or name one file with --mask.",
    ),
    "P20": (
        "分割图的数值最大到 {value}，而类别只有 0 到 {most}（CelebAMask-HQ 的 19 类）。请改用存有类别编号的图，不要放大成灰度。",
        "The numbers in this label map go up to {value}, but classes run from 0 to {most} (the 19 of CelebAMask-HQ). Use a map that holds class numbers, not one stretched to greys.",
    ),
    "P21": (
        "分割图的颜色略有偏差（多半因为存成了 JPEG），已按最接近的类别处理。若结果边缘毛糙，请改用 PNG 分割图。",
        "The colours of this label map are slightly off (most likely it was saved as JPEG) and were taken for the nearest classes. If edges look rough, use a PNG map.",
    ),
    "P22": (
        "这不是分割图：颜色不是 CelebAMask-HQ 的类别颜色，也不是 0 到 18 的类别编号。请用人脸分割工具生成的图，不要用照片。",
        "This is no label map: its colours are not CelebAMask-HQ's class colours, and it holds no class numbers from 0 to 18. Use the output of a face parser, not a photo.",
    ),
    "P23": (
        "分割图里只有一个类别（{kind}），画不出人脸。请换一张图。",
        "This label map holds a single class ({kind}), of which no face can be made. Choose another map.",
    ),
    # --- U: usage ----------------------------------------------------------------------------------------------
    "U01": (
        "强度必须是 0 到 1 之间的数，收到的是 {value}。请改正。",
        "Strength must be a number from 0 to 1, not {value}. Correct it.",
    ),
    "U02": (
        "选项必须是 JSON 对象，可用字段：{fields}。",
        "Options must be a JSON object with any of the fields {fields}.",
    ),
    "U03": ("不认识的选项：{unknown}。可用字段：{fields}。", "Unknown option: {unknown}. Known fields: {fields}."),
    "U04": (
        "人脸编号必须是从 1 开始的整数列表，收到的是 {value}。请改正。",
        "Face numbers must be a list of whole numbers from 1, not {value}. Correct them.",
    ),
    "U05": (
        'strengths 必须是“编号: 强度”的对象，例如 {{"2": 0.5}}，收到的是 {value}。',
        'strengths must map face numbers to strengths, for example {{"2": 0.5}}, not {value}.',
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
    "F16": (
        "照片很大，检测时已缩小：小于 {smallest} 像素的人脸可能漏检。如需处理，请把照片裁成几部分。",
        "The photo is very large and was searched at a smaller size: faces below {smallest} px may be missed. To have them restored too, cut the photo into parts.",
    ),
    # --- F40…F69: choosing faces, how strongly, and the options for it --------------------------------------------
    "F40": (
        "已修复，但框内没有检测到人脸：按一张端正的正脸处理了这个框。若结果错位，请把框画得贴合脸部（眉到下巴）。",
        "Restored, but no face was found inside the box, so the box was taken for an upright frontal face. If the result is out of place, draw the box close around the face, brow to chin.",
    ),
    "F41": (
        "脸只有 {px} 像素，小于设定的 {least} 像素，保持原样。调低最小尺寸即可修复。",
        "The face is {px} px, below the {least} px you set, and was left as it was. Lower the minimum size to restore it.",
    ),
    "F42": (
        "只修复最大的脸（{index} 号），这张保持原样。取消“只修复最大的一张脸”（--largest）即可修复。",
        "Only the largest face (number {index}) was to be restored, so this one was left as it was. Turn off “Only the largest face” (--largest) to restore it.",
    ),
    "F43": (
        "侧脸（约 {degrees}°），默认只用 {percent}% 强度：模型主要见过正脸，容易画错远侧的眼睛。如需更强，请自行调高强度。",
        "The face is turned by about {degrees}°, so {percent}% strength was used: the model knows mostly frontal faces and may draw the far eye wrongly. Raise the strength if you want more.",
    ),
    "F44": (
        "这张脸本来就清晰，默认只用 {percent}% 强度，以保留本人原貌。如需更强，请自行调高强度。",
        "This face is sharp already, so {percent}% strength was used to keep it the person's own. Raise the strength if you want more.",
    ),
    "F60": (
        "框必须是 [x, y, 宽, 高]（像素，宽高大于 0）的列表，收到的是 {value}。请改正。",
        "Boxes must be a list of [x, y, width, height] in pixels with width and height above 0, not {value}. Correct them.",
    ),
    "F61": (
        "框（{box}）在照片之外：照片为 {width}×{height} 像素。请改正坐标。",
        "The box ({box}) lies outside the photo of {width}×{height} px. Correct its coordinates.",
    ),
    "F62": (
        "最小尺寸必须是不小于 0 的像素数，收到的是 {value}。请改正。",
        "The minimum size must be a number of pixels from 0, not {value}. Correct it.",
    ),
    "F63": (
        "{field} 只能是 {known} 之一，收到的是 {value}。请改正。",
        "{field} must be one of {known}, not {value}. Correct it.",
    ),
    "F64": (
        "{field} 必须是 true 或 false，收到的是 {value}。请改正。",
        "{field} must be true or false, not {value}. Correct it.",
    ),
    "F65": (
        "框内已有找到的人脸，没有新增。请在人脸列表中勾选它；要补画另一张脸，请让框的中间避开它。",
        "A face inside this box is in the list already, so none was added. Tick it there; to add another face, draw the box so that the known one is not in it.",
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
    "S01": ("请先选择一张照片，再点“开始修复”。", "Choose a photo first, then press Restore."),
    "S02": (
        "这次结果已从服务器清除（停留太久或同时使用的人太多）。请重新点“开始修复”。",
        "This result has been cleared from the server (too long ago, or too many visitors). Press Restore again.",
    ),
    "S03": (
        "出现未预料的错误（{kind}），照片没有改动。请重试；若再次出现，请把服务器日志交给维护者。",
        "An unexpected error occurred ({kind}); the photo was not changed. Try again; if it comes back, give the server's log to the maintainers.",
    ),
    # --- T: time -----------------------------------------------------------------------------------------------
    "T01": (
        "这张照片超过了 {seconds} 秒的时限（停在：{stage}），已放弃，其余照片不受影响。请调大 --timeout，或先缩小照片。",
        "This photo took more than its {seconds} s (stopped while {stage}) and was given up; others are not affected. Raise --timeout, or shrink the photo first.",
    ),
    "T02": (
        "打开这个文件的解码进程意外退出（{reason}），已跳过，其余照片不受影响。文件可能已损坏，或内存不足：请重新获取文件，或关闭其他程序后再试。",
        "The process that decodes this file ended unexpectedly ({reason}); the file was skipped, others are not affected. It may be damaged, or memory ran out: get it again, or close other programs first.",
    ),
    "T03": (
        "运行中止时这张照片还没有完成，没有写出。加上 --skip-existing 重新运行，即可从这里继续。",
        "The run was stopped before this photo was finished; nothing was written. Run it again with --skip-existing to continue from here.",
    ),
    "T04": (
        "服务器正在处理的照片已达上限（{limit} 张）。请稍后重试。",
        "The server is busy with as many photos as it takes at once ({limit}). Try again a little later.",
    ),
    "T05": (
        "服务器正在关闭，不再接受新照片。请稍后重试。",
        "The server is shutting down and takes no new photos. Try again later.",
    ),
    "T06": (
        "引擎已超过 {seconds} 秒没有进展，可能卡住了。请重启服务；若再次出现，请把日志交给维护者。",
        "The engine has shown no progress for more than {seconds} s and may be stuck. Restart the service; if it happens again, give the log to the maintainers.",
    ),
    "T07": (
        "服务正在启动：权重还没有试运行完。请稍候。",
        "The service is starting: its weights have not been tried yet. Wait a moment.",
    ),
    "stage.read": ("读取照片", "reading the photo"),
    "stage.detect": ("查找人脸", "looking for faces"),
    "stage.align": ("裁切人脸", "cutting out faces"),
    "stage.network": ("修复人脸", "restoring faces"),
    "stage.background": ("处理背景", "making the background"),
    "stage.paste": ("放回照片", "putting the faces back"),
    "stage.encode": ("压缩结果", "encoding the result"),
    "stage.write": ("写入文件", "writing the file"),
    "S04": (
        "现在排队的人太多（{count} 位）。请过几分钟再试。",
        "Too many people are waiting ({count}). Try again in a few minutes.",
    ),
    "S05": (
        "已停止，没有改动照片。想继续时，请再点“开始修复”。",
        "Stopped; the photo was not changed. Press Restore to start again.",
    ),
    "S10": ("请先选择照片或 zip 压缩包，再点“全部修复”。", "Choose photos or a zip first, then press Restore all."),
    "S11": (
        "{file} 是损坏的 zip，无法解开（{reason}）。请重新压缩后再上传。",
        "{file} is a damaged zip and cannot be unpacked ({reason}). Pack it again and upload it anew.",
    ),
    "S12": (
        "{file} 太大：一次最多 {files} 张照片、解开后 {gb} GB。请分几次上传。",
        "{file} is too large: at most {files} photos and {gb} GB unpacked at a time. Upload it in parts.",
    ),
    "S13": (
        "{file} 是加密的 zip，无法解开。请去掉密码后再上传。",
        "{file} is an encrypted zip and cannot be unpacked. Upload it without a password.",
    ),
    "S14": (
        "上传的文件里没有照片。请选择 JPEG、PNG、WebP、TIFF 等图片，或装有图片的 zip。",
        "There is no photo in what was uploaded. Choose pictures (JPEG, PNG, WebP, TIFF…) or a zip of them.",
    ),
    "S20": (
        "这是公共页面，所有者没有设置管理口令（GPEN_ZOO_ADMIN_TOKEN），因此不能在这里改动权重。请在自己的电脑上运行本项目。",
        "This is a public page whose owner has set no admin token (GPEN_ZOO_ADMIN_TOKEN), so weights cannot be changed here. Run the project on a machine of your own.",
    ),
    "S21": (
        "管理口令不对，没有改动。请填写服务器上 GPEN_ZOO_ADMIN_TOKEN 的值。",
        "The admin token is wrong; nothing was changed. Enter the value of GPEN_ZOO_ADMIN_TOKEN on the server.",
    ),
    "S22": (
        "请先阅读 {name} 的许可说明，勾选“我已阅读并接受”，再继续。",
        "Read the terms of {name} first and tick “I have read and accept them”, then go on.",
    ),
    "S23": (
        "{name} 已安装（来自 {source}），马上就会用上。",
        "{name} is installed (from {source}) and used from now on.",
    ),
    "S24": ("{name} 已经装好，无需下载。", "{name} is installed already; nothing to download."),
    "S25": (
        "{name} 已移除，腾出 {mb} MB。需要时可重新下载。",
        "{name} was removed, which freed {mb} MB. Download it again when you need it.",
    ),
    "S26": ("请先选择一个权重文件。", "Choose a weight file first."),
    "S30": (
        "这次没有借到显卡（{reason}；需要约 {seconds} 秒）。请登录 Hugging Face 后重试、过一会儿再来，或在自己的电脑上运行本项目。",
        "No graphics card could be borrowed ({reason}; about {seconds} s needed). Sign in to Hugging Face and try again, come back later, or run the project on a machine of your own.",
    ),
    # --- ui: labels of the page ---------------------------------------------------------------------------------
    "ui.title": ("GPEN Zoo · 老照片人脸修复", "GPEN Zoo · restore the faces in a photo"),
    "ui.lead": (
        "放入一张老旧、模糊或压缩严重的照片，取回整张照片，每张脸都已修复。",
        "Drop an old, blurred or badly compressed photo; get the whole photo back with every face restored.",
    ),
    "ui.tab_restore": ("修复", "Restore"),
    "ui.tab_batch": ("批量", "Batch"),
    "ui.batch_files": ("照片或 zip", "Photos or a zip"),
    "ui.batch_about": (
        "一次最多 {most} 张；有一张坏了也不影响其余的。结果打包成一个 zip，文件名与原来一致，出错的原因写在里面。",
        "Up to {most} at a time; a bad one does not stop the others. The results come as one zip under their own names, with the reasons of failures inside.",
    ),
    "ui.batch_run": ("全部修复", "Restore all"),
    "ui.batch_format": ("结果格式", "Format of the results"),
    "ui.batch_same": ("与原图相同", "As the photo"),
    "ui.batch_download": ("下载全部结果（zip）", "Download all results (zip)"),
    "ui.batch_progress": ("已完成 {done}/{total} 张照片", "{done} of {total} photos done"),
    "ui.batch_done": ("完成 {done} 张，失败 {failed} 张。", "{done} done, {failed} failed."),
    "ui.batch_stopped": (
        "已停止，还有 {left} 张没有处理；做完的都在 zip 里。",
        "Stopped with {left} left; what was done is in the zip.",
    ),
    "ui.batch_photo": ("结果", "Result"),
    "ui.batch_name": ("文件", "File"),
    "ui.batch_faces": ("人脸", "Faces"),
    "ui.batch_seconds": ("秒", "Seconds"),
    "ui.batch_notes": ("说明", "Notes"),
    "ui.batch_bad": ("失败", "Failed"),
    "ui.tab_tasks": ("更多", "More"),
    "ui.tab_colorize": ("上色", "Colour"),
    "ui.tab_inpaint": ("补全", "Fill in"),
    "ui.tab_seg2face": ("分割图生成", "Label map"),
    "ui.about_colorize": (
        "给黑白照片上色。明暗与细节保持照片原样，只添加颜色；颜色是网络推测的，未必是真实颜色。",
        "Colours a black-and-white photo. Lightness and detail stay the photo's own, only colour is added; the colours are guesses, not facts.",
    ),
    "ui.about_inpaint": (
        "补全划痕、污点或缺损。只改动涂抹过的像素，其余一个像素也不动；补上的内容是网络推测的。",
        "Fills in scratches, stains and missing parts. Only what you paint over changes, not a pixel besides; what is filled in is invented.",
    ),
    "ui.about_seg2face": (
        "由人脸分割图（皮肤、眼睛、头发等区域）生成一张人脸。生成的是并不存在的人。",
        "Makes a face from a label map (where skin, eyes, hair and so on are). The person does not exist.",
    ),
    "ui.task_missing": (
        "这项功能需要权重 {name}，现在还没有安装。",
        "This needs the weights {name}, which are not installed yet.",
    ),
    "ui.task_get": (
        "请到“权重”一页选中 {name}，阅读许可说明后下载或导入；也可以在命令行运行：",
        "On the Weights tab choose {name}, read its terms, and download or import it; or run on the command line:",
    ),
    "ui.task_terms": (
        "官方没有公布这个文件的摘要：从网上下载时需要另外勾选接受，命令行则加 --accept-unpinned。",
        "No digest of this file has been published: to download it you have to accept that (a tick on the page, --accept-unpinned on the command line).",
    ),
    "ui.to_weights": ("去“权重”一页", "Go to the Weights tab"),
    "ui.label_map": ("分割图", "Label map"),
    "ui.drop_map": (
        "拖放分割图到这里，或点击选择（CelebAMask-HQ 的类别颜色或编号）",
        "Drop a label map here or click to choose (class colours or numbers of CelebAMask-HQ)",
    ),
    "ui.paint_here": ("在此涂抹", "Paint here"),
    "ui.mask_instead": ("改用蒙版文件", "Use a mask file instead"),
    "ui.mask_file": ("蒙版：黑底，要补全处为白色", "Mask: black, white where to fill in"),
    "ui.colour_strength": ("颜色浓度", "Strength of colour"),
    "ui.colour_strength_info": (
        "0 为原照片，1 为网络给出的全部颜色。",
        "0 is the photo, 1 all of the network's colour.",
    ),
    "ui.area": ("处理范围", "Area"),
    "ui.area_info": (
        "头像选“整张”；多人或风景照可按脸处理。",
        "For a portrait the whole; in photos of groups or places, the faces.",
    ),
    "ui.area_whole": ("整张照片", "The whole photo"),
    "ui.area_faces": ("只处理每张脸", "Each face only"),
    "ui.area_both": ("先整张，再逐张脸", "The whole, then each face"),
    "ui.run_colorize": ("开始上色", "Colour it"),
    "ui.run_inpaint": ("开始补全", "Fill in"),
    "ui.run_seg2face": ("生成人脸", "Make a face"),
    "ui.task_ready": ("已读取，可以开始。", "Read; ready to start."),
    "ui.paint_ready": (
        "已读取。请在照片上涂抹要补全的地方，然后开始。",
        "Read. Paint over the spots on the picture, then start.",
    ),
    "ui.task_download": ("下载结果", "Download the result"),
    "ui.task_divider": ("原图与结果的分界位置", "Divider between the original and the result"),
    "ui.before_colorize": ("原图", "Original"),
    "ui.after_colorize": ("上色后", "Coloured"),
    "ui.before_inpaint": ("原图", "Original"),
    "ui.after_inpaint": ("补全后", "Filled in"),
    "ui.before_seg2face": ("分割图", "Label map"),
    "ui.after_seg2face": ("生成的人脸", "Face"),
    "ui.idle_colorize": ("选一张黑白照片，点“开始上色”。", "Choose a black-and-white photo and press “Colour it”."),
    "ui.idle_inpaint": (
        "选一张照片，涂抹要补全的地方，点“开始补全”。",
        "Choose a photo, paint over the spots, and press “Fill in”.",
    ),
    "ui.idle_seg2face": ("选一张分割图，点“生成人脸”。", "Choose a label map and press “Make a face”."),
    "ui.task_done": (
        "完成：{width}×{height} 像素，用时 {seconds} 秒（{weights}）。",
        "Done: {width}×{height} pixels in {seconds} s ({weights}).",
    ),
    "ui.stage_paint": ("网络正在处理：已完成 {done}/{total}", "The network is at work: {done} of {total} done"),
    "ui.tab_weights": ("权重", "Weights"),
    "ui.w_name": ("名称", "Name"),
    "ui.w_role": ("用途", "For"),
    "ui.w_size": ("大小", "Size"),
    "ui.w_status": ("状态", "State"),
    "ui.w_licence": ("许可", "Licence"),
    "ui.w_in_use": ("使用中", "in use"),
    "ui.w_unknown": ("未知", "unknown"),
    "ui.w_disk": (
        "权重文件夹 {home}，占用 {mb} MB。点名称看详情。",
        "Zoo folder {home}, {mb} MB. Press a name for its details.",
    ),
    "ui.w_disk_public": (
        "权重共占用 {mb} MB。点名称看详情。",
        "The weights take {mb} MB. Press a name for its details.",
    ),
    "ui.w_no_licence": ("未声明", "none stated"),
    "ui.w_file": ("作者的文件", "Author's file"),
    "ui.w_digest": ("摘要（SHA256）", "Digest (SHA256)"),
    "ui.w_no_digest": (
        "清单未登记（只接受与来源所列摘要相符的文件，或由你担保）",
        "not in the manifest (accepted only against the digest its host lists, or on your word)",
    ),
    "ui.w_sources": ("来源", "Sources"),
    "ui.w_no_sources": (
        "没有下载来源：请自行取得文件后导入。",
        "No source to download from: get the file yourself and import it.",
    ),
    "ui.w_bundled": (
        "随项目附带，一直可用，无需下载。",
        "Bundled with the project, always there; nothing to download.",
    ),
    "ui.w_from": ("装自", "Installed from"),
    "ui.w_terms": ("许可说明", "Terms"),
    "ui.w_plan": ("本机方案", "Plan on this machine"),
    "ui.w_chosen": ("选中的权重", "Chosen weight"),
    "ui.w_consent": ("我已阅读并接受上面的许可说明", "I have read the terms above and accept them"),
    "ui.w_source": ("来源", "Source"),
    "ui.w_any_source": ("自动（依次尝试）", "Automatic (in order)"),
    "ui.w_mirror": ("Hugging Face 镜像地址（可不填）", "Address of a Hugging Face mirror (optional)"),
    "ui.w_mirror_info": (
        "留空则用 HF_ENDPOINT 或官方地址。无论从哪里下载，都按清单核对摘要。",
        "Empty means HF_ENDPOINT or the official address. Whoever serves the file, its digest is checked.",
    ),
    "ui.w_unpinned": (
        "接受没有登记摘要的文件（自负责任）",
        "Accept a file without a recorded digest (at your own risk)",
    ),
    "ui.w_download": ("下载", "Download"),
    "ui.w_verify": ("校验", "Verify"),
    "ui.w_remove": ("移除", "Remove"),
    "ui.w_remove_sure": ("确定移除这个权重吗？", "Remove this weight?"),
    "ui.w_token": ("管理口令", "Admin token"),
    "ui.w_token_info": (
        "公共页面上，改动权重需要口令；查看不需要。",
        "On a public page changing weights needs the token; looking does not.",
    ),
    "ui.w_progress": (
        "正在从 {host} 下载：{done} MB，共 {total} MB，每秒 {speed} MB",
        "Downloading from {host}: {done} of {total} MB, {speed} MB/s",
    ),
    "ui.w_asking": ("正在询问来源…", "Asking the source…"),
    "ui.w_import": ("导入文件", "Import a file"),
    "ui.w_import_file": ("权重文件（.pth、.safetensors、.onnx）", "Weight file (.pth, .safetensors, .onnx)"),
    "ui.w_import_as": ("当作哪个权重", "Taken for"),
    "ui.w_by_digest": ("按摘要辨认", "Told by its digest"),
    "ui.w_import_run": ("导入", "Import"),
    "ui.w_plans": ("各种显存用什么方案", "Plans by memory"),
    "ui.w_plans_about": (
        "由引擎按同一套算式推算：批量、分块、半精度、CPU，从左到右越来越宽裕。单元格为所需显存。",
        "Reckoned by the very code that plans a run. Each cell: numbers, faces at once, tiles, memory needed.",
    ),
    "ui.w_batch": ("每批 {n} 张", "{n} at once"),
    "ui.w_tile": ("分块 {px} 像素", "tiles of {px} px"),
    "ui.w_graphics": ("显卡（NVIDIA）", "Graphics card (NVIDIA)"),
    "ui.w_host": ("只用 CPU（内存）", "CPU only (main memory)"),
    "ui.role_restorer": ("人脸修复", "restoring faces"),
    "ui.role_colorizer": ("上色", "colouring"),
    "ui.role_inpainter": ("补全", "filling in"),
    "ui.role_seg2face": ("由分割图生成", "faces from segments"),
    "ui.role_discriminator": ("只用于训练", "training only"),
    "ui.role_detector": ("查找人脸", "finding faces"),
    "ui.role_parser": ("分割人脸", "parsing faces"),
    "ui.role_upscaler": ("放大背景", "enlarging the background"),
    "ui.tab_help": ("帮助", "Help"),
    "ui.help_what": ("能做什么，不能做什么", "What it does and what it does not"),
    "ui.help_what_1": (
        "GPEN 把照片里的每张脸裁出来，按人脸的样子重新画清楚，再放回原处；不放大照片时，脸以外一个像素也不动。",
        "GPEN cuts out every face of a photo, draws it anew as a clear face, and puts it back; unless the photo is enlarged, not a pixel changes outside the faces.",
    ),
    "ui.help_what_2": (
        "它靠的是对人脸的一般认识，并不认识照片里的人。脸越小、越模糊，画出来的细节就越多是猜的：小于 24 像素时大半是生成的。不要把结果当作证据。",
        "It goes by what faces look like in general and does not know the person. The smaller and the more blurred a face, the more is guessed: below 24 px most detail is invented. Never take a result for evidence.",
    ),
    "ui.help_what_3": (
        "“修复”页只修人脸：给黑白照片上色、补全折痕和破损在“更多”页（各需另装权重），放大整张照片用“更多选项”里的“放大”。侧脸、遮挡、眼镜和首饰容易画错：用强度滑块减弱，或取消勾选那张脸。",
        "The Restore tab mends faces only: the More tab colours grey photos and fills in folds and tears (each with weights of its own), and Enlarge under More options makes the whole photo larger. Profiles, covered faces, glasses and jewellery often come out wrong: lower the strength or untick the face.",
    ),
    "ui.help_weights": ("怎样取得官方权重", "How to get the official weights"),
    "ui.help_weights_1": (
        "在“权重”页选中 GPEN-BFR-512，读过许可说明后点“下载”。中断了再点一次会接着下载，内容按清单里的摘要核对。",
        "Choose GPEN-BFR-512 in the Weights tab, read its terms and press Download. Pressing again after a break continues, and the bytes are checked against the manifest's digest.",
    ),
    "ui.help_weights_2": (
        "在中国大陆，huggingface.co 常常连不上：可在“更多选项”里填一个镜像地址（或设置环境变量 HF_ENDPOINT），也可改选魔搭（ModelScope）等其他来源。",
        "From mainland China huggingface.co is often out of reach: enter a mirror's address under More options (or set HF_ENDPOINT), or choose another source such as ModelScope.",
    ),
    "ui.help_weights_3": (
        "已经有文件（例如在 ComfyUI 或 GPEN 目录里）？用“导入文件”，它会告诉你那是什么。",
        "Have the file already, in a folder of ComfyUI or GPEN for example? Import it; you are told what it is.",
    ),
    "ui.help_faq": ("常见问题", "Common questions"),
    "ui.faq_no_face": ("为什么没有找到人脸？", "Why was no face found?"),
    "ui.faq_invented": ("为什么修复后不太像本人？", "Why does the result not look like the person?"),
    "ui.faq_softer": ("为什么大脸的变化不明显？", "Why does a large face hardly change?"),
    "ui.faq_weak": ("为什么效果这么弱？", "Why is the effect so weak?"),
    "ui.faq_heic": ("苹果手机的 HEIC 照片打不开？", "HEIC photos of an iPhone do not open?"),
    "ui.faq_page": ("下载的权重文件为什么不能用？", "Why is the weight file I downloaded refused?"),
    "ui.faq_unpinned": ("为什么有的权重不让下载？", "Why are some weights not downloaded?"),
    "ui.faq_memory": ("内存或显存不够怎么办？", "What if memory runs out?"),
    "ui.faq_cleared": ("为什么结果不见了？", "Why is my result gone?"),
    "ui.help_api": ("程序怎样调用", "How programs call it"),
    "ui.help_api_1": (
        "把 ADDRESS 换成本页地址。选项见 README；被拒绝时，错误信息里有代码和中英文提示。",
        "Put this page's address in place of ADDRESS. The README lists the options; a refusal carries its code and the hint in both languages.",
    ),
    "ui.help_api_2": (
        "用 gpen-zoo serve 启动时，一条命令就能修复一张照片：",
        "Where gpen-zoo serve runs, one command restores a photo:",
    ),
    "ui.help_examining": ("正在检查这台机器…", "Examining this machine…"),
    "ui.photo": ("照片", "Photo"),
    "ui.drop": (
        "拖放照片到这里，或点击选择（也可粘贴、拍照）",
        "Drop a photo here or click to choose (or paste, or take one)",
    ),
    "ui.restore": ("开始修复", "Restore"),
    "ui.stop": ("停止", "Stop"),
    "ui.more": ("更多选项", "More options"),
    "ui.strength": ("强度", "Strength"),
    "ui.strength_info": (
        "0 为原图，1 为模型的全部效果；调节时立即生效，无需重新计算。",
        "0 is the photo, 1 all of the model; takes effect at once, without running the model again.",
    ),
    "ui.auto": ("按每张脸自动选择强度", "Strength by what suits each face"),
    "ui.auto_info": (
        "侧脸、或原图本来就清晰时会减弱；拖动上面的滑块即改为统一强度。",
        "Less for profiles and for faces that are sharp already; moving the slider sets one strength for all.",
    ),
    "ui.branch": ("分支", "Branch"),
    "ui.branch_info": ("自动：每张脸用能容纳它的最小分支。", "Automatic: the smallest branch that holds each face."),
    "ui.branch_auto": ("自动", "Automatic"),
    "ui.mask": ("修改范围", "What may change"),
    "ui.mask_info": (
        "范围以外一个像素也不动（放大照片时除外）。",
        "Outside it not a pixel changes, unless the photo is enlarged.",
    ),
    "ui.mask_face": ("脸部", "Face"),
    "ui.mask_hair": ("脸部和头发", "Face and hair"),
    "ui.mask_crop": ("整个裁切框", "The whole crop"),
    "ui.tone": ("色调", "Tone"),
    "ui.tone_info": (
        "黑白照片不会变彩色，泛黄的照片保持泛黄。",
        "A grey photo gains no colour, a sepia one keeps its sepia.",
    ),
    "ui.tone_auto": ("自动判断", "As judged"),
    "ui.tone_colour": ("彩色", "Colour"),
    "ui.tone_toned": ("单色调（如泛黄）", "Toned (sepia)"),
    "ui.tone_grey": ("黑白", "Grey"),
    "ui.grain": ("保留颗粒", "Keep the grain"),
    "ui.grain_info": (
        "给修复后的脸加上照片本身的颗粒，让脸与周围一致。",
        "Puts the photo's own grain over restored faces, so that they fit in.",
    ),
    "ui.largest": ("只修复最大的一张脸", "Only the largest face"),
    "ui.min_size": ("不修复小于这么多像素的脸", "Leave faces of fewer pixels alone"),
    "ui.aligned": ("整张图就是一张已对齐的脸", "The whole picture is one aligned face"),
    "ui.aligned_info": ("仅用于已按人脸裁好的方图。", "Only for square pictures already cropped to a face."),
    "ui.before": ("修复前", "Before"),
    "ui.after": ("修复后", "After"),
    "ui.divider": ("修复前与修复后的分界位置", "Divider between before and after"),
    "ui.actual": ("100 %", "100 %"),
    "ui.screen": ("全屏", "Full screen"),
    "ui.faces": (
        "人脸：取消勾选即恢复原样；点按图片可看修复前",
        "Faces: untick to leave one as it was; press a picture to see it before",
    ),
    "ui.face_number": ("第 {index} 张", "Face {index}"),
    "ui.face_unticked": ("不会修复。", "Will be left as it is."),
    "ui.own_strength": ("第 {index} 张脸的强度", "Strength of face {index}"),
    "ui.own_reset": ("恢复为总强度", "Back to the common strength"),
    "ui.thumb": ("第 {index} 张脸：显示修复前", "Face {index}: show it before"),
    "ui.download": ("下载修复后的照片", "Download the restored photo"),
    "ui.report": ("报告与命令行", "Report and command line"),
    "ui.report_file": ("下载报告（JSON）", "Download the report (JSON)"),
    "ui.command": ("同样设置的命令行", "The same settings as a command line"),
    "ui.command_info": (
        "把文件名换成照片在你电脑上的路径；单张脸各自的强度不在其中。",
        "Put the photo's path on your computer in place of the file name. Strengths of single faces are not in it.",
    ),
    "ui.examples": ("示例照片（点按即可看到修复前后）", "Example photos (press one to see before and after)"),
    "ui.example": ("示例 {number}", "Example {number}"),
    "ui.privacy": (
        "照片只在这台服务器上处理；关闭页面后结果即删除，上传的文件最多保留 2 小时。",
        "Photos are processed on this server only; results go when you close the page, uploads after 2 hours at the latest.",
    ),
    "ui.idle": (
        "选好照片后点“开始修复”，这里会显示修复前后的对比。",
        "Choose a photo and press Restore; before and after appear here.",
    ),
    "ui.facts": (
        "{name}：{format}，{width}×{height}（{mp} 兆像素）",
        "{name}: {format}, {width}×{height} ({mp} megapixels)",
    ),
    "ui.found": ("找到 {found} 张脸，可修复 {todo} 张。", "Faces found: {found}; to be restored: {todo}."),
    "ui.found_none": ("没有可修复的脸。", "There is no face to restore."),
    "ui.found_aligned": ("整张图将作为一张脸交给 {branch}。", "The whole picture goes through {branch} as one face."),
    "ui.estimate": ("预计约 {seconds} 秒（{device}）。", "About {seconds} s on {device}."),
    "ui.summary": (
        "找到 {found} 张脸，修复了 {restored} 张，用时 {seconds} 秒。",
        "Faces found: {found}; restored: {restored}; {seconds} s.",
    ),
    "ui.stage_look": ("正在读取照片、查找人脸…", "Reading the photo and looking for faces…"),
    "ui.stage_line": ("排队中：前面还有 {done} 位", "Waiting in line: {done} ahead of you"),
    "ui.stage_read": ("正在读取照片", "Reading the photo"),
    "ui.stage_faces": ("正在查找人脸", "Looking for faces"),
    "ui.stage_restore": ("正在修复人脸：已完成 {done}/{total}", "Restoring faces: {done} of {total} done"),
    "ui.stage_background": (
        "正在处理背景：已完成 {done}/{total} 块",
        "Enlarging the background: {done} of {total} tiles done",
    ),
    "ui.scale": ("放大", "Enlarge"),
    "ui.scale_info": ("结果的宽和高各为原图的几倍。", "How many times as wide and as high the result is."),
    "ui.background": ("背景", "Background"),
    "ui.background_info": (
        "脸以外的部分怎样放大。自动：已安装的最好的权重，没有则用 Lanczos 插值。",
        "What enlarges the photo around the faces. Automatic: the best weights installed, else Lanczos interpolation.",
    ),
    "ui.background_absent": (
        "还可在“权重”页安装：{names}。",
        "To be had on the Weights tab: {names}.",
    ),
    "ui.background_auto": ("自动", "Automatic"),
    "ui.background_lanczos": ("Lanczos 插值（快）", "Lanczos interpolation (quick)"),
    "ui.draw": ("有脸没找到？画出来", "A face was missed? Draw it"),
    "ui.draw_info": (
        "在照片上拖出一个框，从眉毛到下巴，左右贴着脸；也可以直接填写数字（单位为像素）。",
        "Drag a box over the photo, from brow to chin and close to the sides of the face; or type the numbers, in pixels.",
    ),
    "ui.draw_later": (
        "放入照片后，可以在这里画出没找到的脸。",
        "Once there is a photo, faces that were missed can be drawn here.",
    ),
    "ui.draw_add": ("添加这张脸", "Add this face"),
    "ui.box_x": ("左", "Left"),
    "ui.box_y": ("上", "Top"),
    "ui.box_w": ("宽", "Width"),
    "ui.box_h": ("高", "Height"),
    "ui.erase": ("去掉画的第 {index} 张脸", "Take drawn face {index} away"),
    "ui.terms": (
        "使用 {names} 之前，请先阅读许可说明；勾选接受后即开始：",
        "Read the terms before {names} is used; accepting them starts the work:",
    ),
    "ui.stage_paste": ("正在放回照片", "Putting the faces back"),
    "ui.face": ("{index}：{reason}", "{index}: {reason}"),
    "ui.licence": ("许可：{text}", "Licence: {text}"),
    "U07": (
        "输出文件 {path} 就是输入文件，照片会被覆盖。请另选输出位置（-o）。",
        "The output {path} is the input itself and would be overwritten. Choose another place (-o).",
    ),
    "U08": (
        "有 {count} 张照片，但 -o {path} 是一个文件名。请改为文件夹。",
        "There are {count} photos, but -o {path} is a file name. Give a folder.",
    ),
    "U40": (
        "-o - 把结果写到标准输出，只能处理一张图片，收到的是 {count} 张。请一次只给一张，或用 -o 指定文件夹。",
        "-o - writes to standard output, which takes one picture, not {count}. Give one at a time, or a folder with -o.",
    ),
    "U41": (
        "{flag} 必须是 0（自动）或不小于 {least} 的数，收到的是 {value}。请改正。",
        "{flag} must be 0 (automatic) or a number of {least} or more, not {value}. Correct it.",
    ),
    "U17": (
        "磁盘已满，无法写入 {path}。请腾出空间后重试，或换个位置保存。",
        "The disk is full: {path} could not be written. Free some space and try again, or save elsewhere.",
    ),
    "U18": (
        '文件名模板 {pattern} 无法使用，可用字段：{fields}。请改正，例如 --name "{{stem}}_{{time}}"。',
        'The name pattern {pattern} cannot be used; its fields are {fields}. Correct it, for example --name "{{stem}}_{{time}}".',
    ),
    "U19": (
        "文件夹 {path} 里没有图片。要包括下级文件夹，请加 --recursive。",
        "There are no pictures in the folder {path}. Add --recursive to include the folders below it.",
    ),
    "U20": (
        "没有文件符合 {pattern}。请检查路径；含通配符的路径最好加引号。",
        "No file matches {pattern}. Check the path; a path with wildcards is best put in quotes.",
    ),
    "U21": (
        "{flag} 在这里用不到：尺寸、宽度等都从权重文件本身得知，也不需要密钥。要指定分支请用 --model，例如 --model GPEN-BFR-512。",
        "{flag} is not needed here: sizes and widths are read from the weights themselves, and there are no keys. Choose a branch with --model, for example --model GPEN-BFR-512.",
    ),
    "U22": (
        "没有 --use_sr 时，{flag} 不起作用，与作者的脚本一样。要放大照片，请用 --scale 2 或 --scale 4。",
        "Without --use_sr, {flag} has no effect, as in the author's script. To enlarge the photo, use --scale 2 or --scale 4.",
    ),
    "U23": (
        "{flag} 在这里用不到：背景用已安装的最好的权重放大。要指定权重请用 --background，例如 --background realesrnet-x2。",
        "{flag} is not needed here: the background is enlarged by the best weights installed. Choose others with --background, for example --background realesrnet-x2.",
    ),
    "U24": (
        "{flag} 在这里用不到：彩色、灰度和透明通道都按文件内容自动识别并保留。",
        "{flag} is not needed here: colour, grey and transparency are recognised from the file and kept.",
    ),
    "U25": (
        "{flag} 在这里用不到：人脸总会被修复。要减弱效果请用 --strength。",
        "{flag} is not needed here: faces are always restored. Use --strength for a milder effect.",
    ),
    "U26": (
        "restore 只做人脸修复，不能做 {task}。请去掉 --task；上色、补全、由分割图生成人脸分别用 gpen-zoo colorize、inpaint、seg2face。",
        "restore restores faces and cannot do {task}. Leave --task out; for the other tasks there are gpen-zoo colorize, inpaint and seg2face.",
    ),
    "U27": (
        "这台电脑没有可用的 CUDA 显卡，将改用默认设备，速度较慢。请用 gpen-zoo doctor 查看原因。",
        "No CUDA device can be used on this machine, so the default device is used, which is slower. gpen-zoo doctor tells more.",
    ),
    "U28": (
        "{flag} 必须是不小于 {least} 的数，收到的是 {value}。请改正。",
        "{flag} must be a number of {least} or more, not {value}. Correct it.",
    ),
    "U29": (
        "没有 --aligned 时，--auto-resize 不需要做什么：每张脸本来就会自动选用合适的分支。",
        "Without --aligned there is nothing for --auto-resize to do: every face gets the branch that fits it anyway.",
    ),
    "U34": (
        "没有这样的参数：{words}。请检查拼写；加 --help 可查看全部参数。",
        "No such argument: {words}. Check the spelling; --help lists all arguments.",
    ),
    "U35": (
        "缺少参数：{words}。请补上；加 --help 可查看用法。",
        "Missing: {words}. Add it; --help tells how.",
    ),
    "U36": (
        "{flag} 不能是 {value}。请改用其中之一：{known}。",
        "{flag} cannot be {value}. Use one of these: {known}.",
    ),
    "U37": (
        "{flag} 的值 {value} 不是所需的数，或超出范围。请改正；加 --help 可查看说明。",
        "{flag} cannot take the value {value}: it is not the number that is wanted, or out of range. Correct it; --help tells more.",
    ),
    "U38": (
        "{flag} 后面的值不对：缺少或多余。请改正；加 --help 可查看用法。",
        "{flag} has too few or too many values after it. Correct that; --help tells how.",
    ),
    "U39": (
        "命令行有误（{reason}）。加 --help 可查看用法。",
        "The command line is wrong ({reason}). See --help.",
    ),
    "cli.as_json": ("输出 JSON", "print JSON"),
    "cli.one_name": ("权重的名字，见 weights list", "name of a weight, see weights list"),
    "cli.any_file": ("任何文件", "any file"),
    "cli.weight_files": ("权重文件，或放有权重文件的文件夹", "weight files, or folders of them"),
    "cli.usage": ("用法：", "usage: "),
    "cli.arguments": ("参数", "arguments"),
    "cli.flags": ("选项", "options"),
    "cli.help": ("显示本说明并退出", "show this help and exit"),
    "U30": (
        "磁盘已满，剩下的 {count} 张没有处理。请腾出空间，再加上 --skip-existing 重新运行，已完成的不会重做。",
        "The disk is full; {count} photos were left undone. Free some space and run again with --skip-existing; what is done is not done again.",
    ),
    "U31": (
        "请写出要下载的权重名，或用 --all-branches。gpen-zoo weights list 会列出全部名称。",
        "Name the weights to download, or use --all-branches. gpen-zoo weights list shows every name.",
    ),
    "U32": (
        "看不懂降质设置 {spec}。可用预设：{presets}；或自定义，例如 blur=0.2-4,jpeg=60（范围：{known}）。",
        "The degradation {spec} is not understood. Use a preset ({presets}), or parts such as blur=0.2-4,jpeg=60 (within {known}).",
    ),
    "U33": (
        "有 {count} 张原图在 --lq 文件夹里找不到同名图片（{names}）。请核对文件名。",
        "{count} pictures have no counterpart of the same name in the --lq folder ({names}). Check the file names.",
    ),
    # --- cli: lines and help of the command line -----------------------------------------------------------------
    "cli.about": ("用 GPEN 修复整张照片里的人脸。", "Restore the faces of whole photos with GPEN."),
    "cli.lang": ("界面语言（默认跟随系统）", "language of messages (default: the system's)"),
    "cli.log_json": ("日志写成 JSON，每行一个对象", "write the log as JSON, one object a line"),
    "cli.recursive": (
        "包括下级文件夹，结果保持同样的结构",
        "include the folders below, and keep their structure in the output",
    ),
    "cli.name": (
        "结果的文件名，可用 {{stem}} {{time}} {{date}} {{n}}（默认 {{stem}}_restored）",
        "name of a result, of {{stem}} {{time}} {{date}} {{n}} (default {{stem}}_restored)",
    ),
    "cli.ext": ("结果的格式（默认与输入相同）", "format of the results (default: the input's)"),
    "cli.quality": ("JPEG、WebP、AVIF 的质量", "quality for JPEG, WebP and AVIF"),
    "cli.auto_resize": (
        "配合 --aligned：先缩放到最接近的 512/1024/2048，修复后恢复原尺寸",
        "with --aligned: bring the picture to the nearest of 512/1024/2048 and the result back to its own size",
    ),
    "cli.size": ("先把照片的长边缩放到这么多像素", "first bring the long side of the photo to this many pixels"),
    "cli.save_faces": ("另存每张脸修复前后的对照图", "also save each face, before and after side by side"),
    "cli.use_cuda": ("等同于 --device cuda:0", "the same as --device cuda:0"),
    "cli.precision": ("计算精度（默认 auto：自动选择）", "precision of the computation (default auto)"),
    "cli.half": ("等同于 --precision float16", "the same as --precision float16"),
    "cli.accelerate": (
        "先实测 torch.compile 等加速手段，确有提升才使用；首张人脸会多等一两分钟",
        "measure torch.compile and its like first and use what wins; the first face takes a minute or two longer",
    ),
    "cli.jobs": ("读取照片和查找人脸的线程数", "threads that read photos and find faces"),
    "cli.timeout": (
        "每张照片最多处理多少秒，超时的记为失败，其余继续",
        "seconds of work a photo may take; a late one counts as failed, the others go on",
    ),
    "cli.skip_existing": (
        "跳过已有结果的照片，从中断处继续",
        "skip photos whose result is there; continues a run that was stopped",
    ),
    "cli.no_cache": ("不在磁盘上记住找到的人脸", "do not remember on disk where faces were found"),
    "cli.quiet": ("只显示最后的统计和错误", "show only errors and the final statistics"),
    "cli.profile": (
        "显示各阶段用时；给出文件名则另存为 JSON",
        "show how long each stage took; also as JSON where a file is named",
    ),
    "cli.trace": ("把各阶段用时写成 Chrome trace 文件", "write the stages as a Chrome trace"),
    "cli.log_level": ("显示开发者日志", "show the developers' log"),
    "cli.restore": ("修复照片", "restore photos"),
    "cli.input": (
        '照片、文件夹、带引号的通配符（"input/*.jpg"），或 - 表示标准输入',
        'photos, folders, patterns in quotes ("input/*.jpg"), or - for standard input',
    ),
    "cli.output": (
        "输出文件夹，或单张照片的文件名，- 表示标准输出（默认 output/）",
        "folder, or a file name for a single photo, or - for standard output (default: output/)",
    ),
    "cli.strength": (
        "0 为原图，1 为模型的全部效果，auto 按每张脸自动选择（默认）",
        "0 is the photo, 1 all of the model, auto what suits each face (the default)",
    ),
    "cli.box": (
        "修复这个框里的脸：左、上、宽、高，单位像素；可重复使用",
        "restore the face in this box: left, top, width, height in pixels; may be repeated",
    ),
    "cli.largest": ("只修复最大的一张脸", "restore only the largest face"),
    "cli.min_face": ("小于这么多像素的脸保持原样", "leave faces of fewer pixels alone"),
    "cli.mask": (
        "修改范围：face 脸部，face+hair 含头发，crop 整个裁切框",
        "what may change: the face, face and hair, or the whole crop",
    ),
    "cli.tone": (
        "照片按彩色、单色调（如泛黄）还是黑白处理（默认自动判断）",
        "treat the photo as colour, toned (sepia) or grey (default: as it was judged)",
    ),
    "cli.grain": ("给修复后的脸加上照片本身的颗粒", "put the photo's own grain over restored faces"),
    "cli.scale": (
        "结果放大到几倍：1、2 或 4（默认 1，人脸以外保持原样）",
        "how many times as wide and high the result is: 1, 2 or 4 (default 1: all but the faces stays as it is)",
    ),
    "cli.background": (
        "背景用什么放大：auto（已安装的最好的权重，没有则 lanczos）、lanczos，或权重名称",
        "what enlarges the background: auto (the best weights installed, else lanczos), lanczos, or the name of weights",
    ),
    "cli.bg_tile": (
        "放大背景时每块的边长（像素；默认 0 = 自动）",
        "side in pixels of the tiles in which the background is enlarged (default 0: automatic)",
    ),
    "cli.tile_unit": ("块", "tile"),
    "cli.aligned": ("整张图就是一张已对齐的脸", "the whole picture is one aligned face"),
    "cli.faces": ("只修复这些编号的脸，例如 1,3", "restore only the faces with these numbers, for example 1,3"),
    "cli.weights_name": (
        "指定权重名，或 auto（按人脸大小自动选择，默认）",
        "name of the weights, or auto (by face size, the default)",
    ),
    "cli.device": ("auto、cpu、cuda:0、mps（默认 auto）", "auto, cpu, cuda:0, mps (default auto)"),
    "cli.json": (
        "把报告写成 JSON 文件，- 表示标准输出",
        "write the report as JSON to this file, - for standard output",
    ),
    "cli.weights": ("查看、下载、校验、转换和管理权重", "see, get, check, convert and keep weights"),
    "cli.weights_download": ("下载并校验权重", "download and verify weights"),
    "cli.weights_warm": (
        "同 download，用于构建容器；不写名称时取 GPEN_ZOO_PRELOAD",
        "as download, for building containers; without names those in GPEN_ZOO_PRELOAD",
    ),
    "cli.weights_inspect": ("查看任意文件是什么、下一步怎么办", "what any file is, and what to do with it"),
    "cli.weights_convert": (
        "把 .pth 权重转换为 safetensors 并收入权重文件夹",
        "convert .pth weights to safetensors, into the zoo folder",
    ),
    "cli.weights_adopt": (
        "把已有的权重文件收入权重文件夹；不写路径时在常见位置查找",
        "take weight files that you have into the zoo folder; without a path the usual places are searched",
    ),
    "cli.weights_export": (
        "导出为可上传到 Hugging Face 的文件夹",
        "write a folder ready for a Hugging Face repository",
    ),
    "cli.weights_pin": ("显示可写入清单的摘要（YAML）", "print the digests for the manifest (YAML)"),
    "cli.weights_remove": ("移除权重", "remove weights"),
    "cli.verify_all": ("校验全部已安装的权重（默认）", "every installed weight (the default)"),
    "cli.download_names": ("权重名", "names of weights"),
    "cli.all_branches": ("所有 GPEN 人脸分支", "every GPEN branch for faces"),
    "cli.source": (
        "只用这个来源：序号、种类或地址的一部分",
        "use only this source: its number, kind or part of its address",
    ),
    "cli.endpoint": (
        "Hugging Face 镜像地址（代替 HF_ENDPOINT）",
        "address of a Hugging Face mirror (instead of HF_ENDPOINT)",
    ),
    "cli.no_digest": ("没有登记过", "nobody has recorded one"),
    "cli.accept_unpinned": (
        "摘要未登记也接受，由你担保这个文件可信",
        "accept a file without a recorded digest, on your own word",
    ),
    "cli.half_file": ("存为 float16，大小减半", "keep it as float16, half the size"),
    "cli.deadline": ("每个地址最多下载多少秒", "seconds that one address may take"),
    "cli.no_bar": ("不显示进度条", "show no progress bar"),
    "cli.scan": (
        "也在常见位置查找（其他软件的权重文件夹、下载缓存）",
        "also search the usual places (folders of other programs, download caches)",
    ),
    "cli.adopt_name": ("这个文件是哪个权重", "which weight the file is"),
    "cli.export_to": ("导出到这个文件夹", "folder to write"),
    "cli.forget": (
        "同时删除登记的摘要，以后可接受另一个版本",
        "also delete its recorded digest, so that another version can be accepted",
    ),
    "cli.weights_list": ("列出全部权重及状态", "all weights and how they stand"),
    "cli.weights_info": ("某个权重的详情与许可", "details and licence of one weight"),
    "cli.weights_verify": ("重新校验已安装的权重", "verify installed weights"),
    "cli.names": ("权重名；不写则为全部已安装的", "names of weights; all installed ones if left out"),
    "cli.doctor": (
        "检查版本、设备、权重，并说明会用到什么",
        "check versions, device and weights, and say what would be used",
    ),
    "cli.serve": ("打开网页", "open the web page"),
    "cli.colorize": ("给黑白照片上色（明暗不变）", "colour black-and-white photos (lightness stays the photo's)"),
    "cli.inpaint": (
        "补全照片中标出的部分（其余像素不变）",
        "fill in the marked parts of photos (no other pixel changes)",
    ),
    "cli.seg2face": (
        "由分割图生成人脸（CelebAMask-HQ 的类别颜色或编号）",
        "make faces from label maps (class colours or numbers of CelebAMask-HQ)",
    ),
    "cli.fill_mask": (
        "蒙版：要补全处为白色的图片（大小不限，可用透明通道），或按照片名查找蒙版的文件夹",
        "mask: a picture that is white where to fill in (any size, may use alpha), or a folder of masks named like the photos",
    ),
    "cli.colour_strength": ("上色的浓度，0 到 1（默认 1）", "how strong the colours are, 0 to 1 (default 1)"),
    "cli.area": (
        "whole 整张照片一次送入网络（默认，适合头像）；faces 只处理找到的每张脸；both 先整张、再逐张脸",
        "whole: the picture in one go (default, for portraits); faces: each face that is found; both: the whole, then each face",
    ),
    "cli.task_totals": (
        "共 {count} 张：完成 {done}，失败 {failed}。总计 {seconds} 秒。",
        "{count} pictures: {done} done, {failed} failed. {seconds} s in all.",
    ),
    "cli.eval": ("与原图比较，评测修复质量", "measure restorations against the truth"),
    "cli.eval_gt": ("原图文件夹", "folder with the true pictures"),
    "cli.eval_lq": ("低质量图片的文件夹，与原图同名", "folder with worn pictures of the same names"),
    "cli.eval_degrade": (
        "由原图生成低质量图片：none、light、standard、heavy、print（老照片）、chat（聊天软件）、video（视频截图），或 blur=0.2-4,shrink=1-5,noise=0-14,jpeg=45-97,motion=0-9,again=50-80",
        "wear the true pictures: none, light, standard, heavy, print, chat, video, or blur=0.2-4,shrink=1-5,noise=0-14,jpeg=45-97,motion=0-9,again=50-80",
    ),
    "cli.eval_seed": (
        "随机种子，相同种子结果相同（默认 123）",
        "the same seed wears pictures the same way (default 123)",
    ),
    "cli.eval_limit": ("只用前 N 张", "only the first N pictures"),
    "cli.eval_size": (
        "先把原图长边缩放到这么多像素",
        "first bring the long side of the true pictures to this many pixels",
    ),
    "cli.eval_photos": (
        "图片是整张照片，需要先查找人脸（默认视为已对齐的人脸）",
        "the pictures are whole photos in which faces are looked for (default: aligned faces)",
    ),
    "cli.eval_weights": ("要比较的权重", "weights to compare"),
    "cli.eval_precision": ("要比较的精度", "precisions to compare"),
    "cli.eval_tile": ("要比较的分块边长，0 为不分块", "sides of tiles to compare, 0 for no tiles"),
    "cli.eval_sheet": ("把对照图存为一张图片", "save a picture of the comparison"),
    "cli.eval_head": (
        "{count} 张图片，指标来自 {source}（PSNR、SSIM 越大越好，LPIPS 越小越好）",
        "{count} pictures, metrics by {source} (PSNR and SSIM: more is better, LPIPS: less is)",
    ),
    "cli.eval_columns": (
        "每行是一种“权重 精度”组合（auto：自动选择），input 为修复前；better：PSNR 高于修复前的图片数；ms：每张毫秒；vs 1st：PSNR 比第一种组合高多少 dB",
        "A row is weights and precision (auto: chosen by itself), input is the picture before; better: pictures with a higher PSNR than before; ms: for a picture; vs 1st: dB of PSNR more than the first of them",
    ),
    "cli.host": ("监听地址（默认 127.0.0.1，仅本机）", "address to listen on (default 127.0.0.1, this machine only)"),
    "cli.port": ("端口（默认 7860）", "port (default 7860)"),
    "cli.serve_timeout": (
        "每张照片最多处理多少秒，0 表示不限（默认 300）",
        "seconds that a photo may take, 0 for no limit (default 300)",
    ),
    "cli.grace": (
        "停止服务时，最多等正在处理的照片多少秒（默认 20）",
        "seconds that running work may still take when the service is stopped (default 20)",
    ),
    "cli.max_requests": (
        "/v1/restore 同时最多处理多少个请求（默认 16）",
        "requests to /v1/restore at once; others are refused (default 16)",
    ),
    "cli.max_body": (
        "/v1/restore 接受的照片最大多少 MB（默认 100）",
        "largest photo in MB that /v1/restore takes (default 100)",
    ),
    "cli.serving": ("已在 {address} 打开，按 Ctrl-C 停止。", "Running at {address}; press Ctrl-C to stop."),
    "cli.open": ("在浏览器中打开", "open it in the browser"),
    "cli.done": ("{input} → {output}", "{input} → {output}"),
    "cli.failed": ("{input}：{reason} [{code}]", "{input}: {reason} [{code}]"),
    "cli.statistics": (
        "共 {count} 张：完成 {done}，失败 {failed}，跳过 {skipped}；修复了 {faces} 张脸。总计 {seconds} 秒，平均每张 {mean_seconds} 秒，每秒 {photos_per_second} 张照片、{faces_per_second} 张脸。",
        "{count} photos: {done} done, {failed} failed, {skipped} skipped; {faces} faces restored. {seconds} s in all, {mean_seconds} s a photo, {photos_per_second} photos/s, {faces_per_second} faces/s.",
    ),
    "cli.interrupted": (
        "已中止；已写出的结果都是完整的。加上 --skip-existing 重新运行即可继续。",
        "Interrupted; every result that was written is whole. Run again with --skip-existing to continue.",
    ),
    "cli.passed_over": (
        "文件夹中有 {count} 个文件不是图片，已略过。",
        "Files in folders that are no pictures were passed over: {count}.",
    ),
    "cli.photo_unit": ("张", "photo"),
    "cli.profile_head": (
        "阶段         照片数      毫秒/张     毫秒合计    占比     排队毫秒",
        "stage        photos     ms/photo       sum ms   share   waiting ms",
    ),
    "cli.disk_use": ("权重文件夹：{home}（占用 {mb} MB）", "Zoo folder: {home} ({mb} MB in use)"),
    "cli.fetched": ("{name}：已安装并校验（{path}）。", "{name}: installed and verified ({path})."),
    "cli.scanned": (
        "在常见位置找到 {count} 个可收入的权重文件。",
        "{count} weight files to adopt were found in the usual places.",
    ),
    "cli.none_adopted": ("{path} 中没有摘要已登记的权重。", "{path} holds no weights with a recorded digest."),
    "cli.removed": ("{name}：已移除，释放 {mb} MB。", "{name}: removed, {mb} MB freed."),
    "cli.nothing_installed": (
        "zoo 文件夹 {home} 中还没有权重；正在使用随附的演示模型。",
        "No weights in the zoo folder {home} yet; the bundled demo model is used.",
    ),
    "cli.verified": ("{name}：校验通过（{path}）。", "{name}: verified ({path})."),
    "cli.bundled": ("随附", "bundled"),
    "cli.installed": ("已安装", "installed"),
    "cli.unverified": ("待校验", "not verified yet"),
    "cli.corrupt": ("已损坏", "corrupt"),
    "cli.missing": ("未安装", "not installed"),
    "cli.unpinned": ("未安装，摘要未登记", "not installed, digest unknown"),
    "cli.doctor_versions": ("版本", "Versions"),
    "cli.doctor_device": ("设备", "Device"),
    "cli.doctor_line": ("{title}：{value}", "{title}: {value}"),
    "cli.doctor_threads": ("{device}，{threads} 个线程", "{device}, {threads} threads"),
    "cli.doctor_in_use": ("{branches}；查找人脸用 {detector}", "{branches}; faces are found by {detector}"),
    "cli.doctor_zoo": ("权重文件夹", "Zoo folder"),
    "cli.doctor_use": ("将会使用", "Would be used"),
    "cli.doctor_problems": ("问题", "Problems"),
    "cli.doctor_fine": ("没有发现问题。", "No problems found."),
    "E01": (
        "没有安装 pillow-heif：无法读取 HEIC 照片（苹果手机的默认格式）。需要时运行 pip install pillow-heif。",
        "pillow-heif is not installed: HEIC photos (the default of iPhones) cannot be read. If you need them, run pip install pillow-heif.",
    ),
    "E02": (
        "{package} 无法导入（{reason}）。其余功能不受影响；请把它与 torch、torchvision 一起重装。",
        "{package} cannot be imported ({reason}). Everything else works; reinstall it together with torch and torchvision.",
    ),
    "E03": (
        "basicsr 1.4.2 不能在 Python 3.13 及以上安装：背景放大与质量评测不可用，人脸修复不受影响。需要时请用 Python 3.12。",
        "basicsr 1.4.2 does not install on Python 3.13 and later: background upscaling and quality metrics are missing, face restoration works. Use Python 3.12 if you need them.",
    ),
    "cli.doctor_accelerate": (
        "逐项实测可选的加速手段（torch.compile 等），需要几分钟",
        "measure every optional accelerator (torch.compile and its like); takes minutes",
    ),
    "cli.doctor_accelerators": ("可选的加速手段", "Optional accelerators"),
    "cli.trial_kept": (
        "{name}：采用，速度为原来的 {ratio:.2f} 倍，误差 {error:.0e}，首次运行 {setup:.0f} 秒",
        "{name}: used, {ratio:.2f} times as fast, error {error:.0e}, first run {setup:.0f} s",
    ),
    "cli.trial_unsteady": (
        "{name}：不采用，并非每次都更快（最好时为 {ratio:.2f} 倍）：这台机器可能正忙，可在空闲时再测，误差 {error:.0e}，首次运行 {setup:.0f} 秒",
        "{name}: not used, it was not the faster one every time ({ratio:.2f} times as fast at best): the machine may have been busy, try again when it is idle; error {error:.0e}, first run {setup:.0f} s",
    ),
    "cli.trial_slower": (
        "{name}：不采用，没有明显更快（{ratio:.2f} 倍），误差 {error:.0e}，首次运行 {setup:.0f} 秒",
        "{name}: not used, no clear gain ({ratio:.2f} times as fast), error {error:.0e}, first run {setup:.0f} s",
    ),
    "cli.trial_different": (
        "{name}：不采用，图像有差别（误差 {error:.0e}），速度为原来的 {ratio:.2f} 倍",
        "{name}: not used, the picture differs (error {error:.0e}), {ratio:.2f} times as fast",
    ),
    "cli.trial_failed": ("{name}：不采用，运行失败（{reason}）", "{name}: not used, it failed ({reason})"),
    "cli.plans": (
        "列出 2–24 GB 内存或显存的机器对每个分支会用的方案（与 --accelerate 同用时，先检查再列出）",
        "show which plan machines with 2 to 24 GB get for each branch (with --accelerate: after all the rest)",
    ),
    "cli.plans_cuda": (
        "显卡（按显存）：分支、显存、预计占用、方案",
        "Graphics card, by its memory: branch, memory, bytes needed, plan",
    ),
    "cli.plans_cpu": (
        "处理器（按内存）：分支、内存、预计占用、方案",
        "CPU, by main memory: branch, memory, bytes needed, plan",
    ),
    "T20": (
        "无法在 {host} 的端口 {port} 上打开网页（{reason}）。请用 --port 换一个端口（或用 --host 换一个地址），或先结束占用它的程序。",
        "The page cannot be opened at {host}, port {port} ({reason}). Choose another port with --port (or another address with --host), or end the program that uses this one.",
    ),
    "T21": (
        '没有安装 --mcp 所需的组件。请在项目目录下运行 pip install ".[mcp]"；它要求较旧的 pydantic，建议装进单独的虚拟环境。不加 --mcp 时网页和接口照常可用。',
        'What --mcp needs is not installed. Run pip install ".[mcp]" in the project\'s folder; it asks for an older pydantic, so a virtual environment of its own is best. Without --mcp the page and its API work as usual.',
    ),
    "T22": (
        "MCP 工具不支持登录，不能与 GPEN_ZOO_AUTH 同时使用。请去掉 --mcp，或去掉 GPEN_ZOO_AUTH 并在前面加一个会检查身份的代理。",
        "MCP tools know no login, so --mcp and GPEN_ZOO_AUTH exclude each other. Leave out --mcp, or leave out GPEN_ZOO_AUTH and put a proxy in front that checks who calls.",
    ),
    "T23": (
        "这个地址只接受 POST，收到的是 {method}。请把照片作为请求体发送：curl --data-binary @photo.jpg 地址 -o restored.jpg（或 -F file=@photo.jpg）。",
        "This address takes POST only, not {method}. Send the photo as the body: curl --data-binary @photo.jpg ADDRESS -o restored.jpg (or -F file=@photo.jpg).",
    ),
    "T24": (
        "表单里没有照片，或格式有误。请这样发送：curl -F file=@photo.jpg 地址，或 curl --data-binary @photo.jpg 地址。",
        "The form holds no photo, or is broken. Send it like this: curl -F file=@photo.jpg ADDRESS, or curl --data-binary @photo.jpg ADDRESS.",
    ),
    "T25": (
        "表单里有 {count} 个文件，而一次只处理一张照片，因此都没有处理。请每张照片发送一次。",
        "The form holds {count} files, but one call takes one photo, so none was worked on. Send one call for each photo.",
    ),
    "T26": (
        '--mcp 所需的 mcp 组件版本不合（找到：{found}）。请在单独的虚拟环境中，于项目目录下运行 pip install ".[mcp]"。不加 --mcp 时网页和接口照常可用。',
        'The package mcp, which --mcp needs, is of a version that does not fit (found: {found}). Run pip install ".[mcp]" in the project\'s folder, in a virtual environment of its own. Without --mcp the page and its API work as usual.',
    ),
    "cli.port_taken": ("端口已被占用", "the port is taken"),
    "cli.port_denied": ("没有使用这个端口的权限", "there is no permission to use this port"),
    "cli.port_range": ("端口号应在 0 到 65535 之间", "ports are numbered from 0 to 65535"),
    "cli.host_unknown": ("找不到这个地址", "there is no such address"),
    "cli.silence": (
        "引擎多少秒没有进展算卡住，/healthz 随之变红（默认 600）",
        "seconds without progress after which the engine counts as stuck and /healthz turns red (default 600)",
    ),
    "cli.exit_when_wedged": (
        "引擎卡住时以退出码 1 结束进程，由 systemd、容器的重启策略等重新拉起",
        "end with exit code 1 when the engine is stuck, so that systemd or a container's restart policy starts anew",
    ),
    "cli.mcp": (
        "同时作为 MCP 工具提供给 AI 助手（需要安装 .[mcp]）",
        "offer the API as MCP tools to assistants too (needs .[mcp] installed)",
    ),
    "cli.serving_mcp": ("MCP 工具地址：{address}", "MCP tools at {address}"),
    "M07": (
        "这台机器上没有设备 {device}。可用的设备：{known}；不写 --device 则自动选择。",
        "There is no device {device} on this machine. Available: {known}; leave --device out to have one chosen.",
    ),
    "E06": (
        "LPIPS 已安装，但它所需的 AlexNet 权重取不到（{reason}），这次不计算 LPIPS。请联网运行一次，torchvision 会下载并缓存它；或把文件放进 TORCH_HOME 下的 hub/checkpoints。",
        "LPIPS is installed, but the AlexNet weights it stands on could not be had ({reason}), so it is left out. Run once with a network, and torchvision fetches and keeps them; or put the file into hub/checkpoints below TORCH_HOME.",
    ),
    "E04": (
        "权重文件夹 {folder} 无法写入，新的权重放不进去。请检查权限，或用 GPEN_ZOO_HOME 换一个位置。",
        "The zoo folder {folder} cannot be written to, so no new weights can be kept. Check its permissions, or choose another place with GPEN_ZOO_HOME.",
    ),
}
