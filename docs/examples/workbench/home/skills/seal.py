import hashlib
import hmac


async def run(text: str, work) -> dict[str, str]:
    """Sign a text with the key of the workbench."""
    key = work.setting("seal.key").reveal().encode()
    return {"text": text, "seal": hmac.new(key, text.encode(), hashlib.sha256).hexdigest()}
