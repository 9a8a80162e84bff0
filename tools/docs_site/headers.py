"""The public headers, with comments that Doxygen reads."""

import re

# The second and third groups are for programs that are built in this tree.
PATTERNS = [
    "penstock/*.h",

    "tensor_service/cuda/*.h",
    *(f"tensor_service/{name}.h" for name in (
        "allocator", "buffer", "checksum", "client", "codec", "destination",
        "device", "device_memory", "device_stream", "direct_receive", "dlpack",
        "dtype", "message", "pool_allocator", "prepared_destinations",
        "rendezvous", "rendezvous_client", "rendezvous_key",
        "rendezvous_service", "service", "status", "store", "strided",
        "tensor")),

    "ps/access/send_secret.h", "ps/cluster.h", "ps/model/model.h", "ps/tls.h",
    *(f"ps/client/{name}.h" for name in (
        "checkpoint", "define", "gradients", "periodic_checkpoints", "pull",
        "reader", "reattach", "training_connection", "worker")),
]

COMMENT = re.compile(r"^( *)//(?!/)(?: (.*)|)$")
TRAILING = re.compile(r"^(.*\S) +// (.*)$")
# The characters that Doxygen takes for commands, tags or links. Doxygen leaves
# text between back quotes alone.
SPECIAL = re.compile(r"(`[^`]*`)|([\\@<>#%&])")


def escaped(text):
    text = SPECIAL.sub(lambda match: match[1] or "\\" + match[2], text)
    return text.replace("\\>::", "\\>\\::")  # else a link to a global name


def converted(text):
    """Returns the text of a header, with /// in place of //."""
    lines, blank_before, in_code = [], True, False
    for number, line in enumerate(text.splitlines()):
        comment = COMMENT.match(line)
        if comment:
            said = comment[2] or ""
            # Recognises an example by its indentation, after a blank line.
            in_code = bool(said.startswith("  ") and (blank_before or in_code)
                           or in_code and not said)
            blank_before = not said
            if number == 0:
                lines.append("/// @file")
            said = "    " + said if in_code else escaped(said)
            lines.append(f"{comment[1]}/// {said}".rstrip())
            continue
        blank_before, in_code = True, False
        trailing = TRAILING.match(line)
        if (trailing and not line.startswith("#")
                and not trailing[1].startswith("}")):
            line = f"{trailing[1]}  ///< {escaped(trailing[2])}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def lay_out(root, folder):
    """Writes the converted headers below a folder, by their paths."""
    for pattern in PATTERNS:
        found = sorted(root.glob(pattern))
        if not found:
            raise FileNotFoundError(f"no header {pattern}")
        for header in found:
            target = folder / header.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(converted(header.read_text(encoding="utf-8")),
                              encoding="utf-8")
