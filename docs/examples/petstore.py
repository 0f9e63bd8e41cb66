"""Tools from an OpenAPI document: operations of a pet store that only read, no administration.

    export PETSTORE_URL=http://127.0.0.1:8080/v3
    noizu-mcp call docs/examples/petstore.py getPetById petId=7

It needs the extra `http`.
"""

import os
from pathlib import Path

from noizu_mcp import OpenAPI, Server

DOCUMENT = Path(__file__).with_name("petstore.json")


class Petstore(Server, name="petstore", version="1.0.0"):
    providers = [
        OpenAPI(
            DOCUMENT,
            include=["tag:pet", "tag:store"],
            exclude=["DELETE *"],
            base_url=os.environ.get("PETSTORE_URL"),
            auth={"api_key": os.environ.get("PETSTORE_KEY", "")},
        )
    ]


if __name__ == "__main__":
    Petstore().run()
