CALLS = ["skill:remember"]
TIMEOUT = 10.0


async def run(lines: list[str], work, keep: bool = False) -> str:
    """Write a digest of some lines, and keep it as a note on demand."""
    most = work.setting("digest.lines", 5)
    digest = "; ".join(lines[:most])
    await work.log(f"{len(lines)} lines, {min(len(lines), most)} of them in the digest")
    if keep:
        await work.call("skill:remember", text=digest)
    return digest
