"""Send a recording to a running server at its own pace and print the translation.

Start the server with speech-translate serve --config demo.
"""

import argparse
import asyncio
import json
import sys
import wave

from websockets.asyncio.client import connect

ADDRESS = "ws://127.0.0.1:8000/v1/session"


async def main(recording: str, address: str = ADDRESS) -> None:
    with wave.open(recording) as file:  # mono, 16 bits
        rate, samples = file.getframerate(), file.readframes(file.getnframes())
    async with connect(address) as socket:

        async def speak() -> None:
            await socket.send(json.dumps({"type": "start", "sample_rate": rate}))
            for begin in range(0, len(samples), rate // 5):  # a tenth of a second
                await socket.send(samples[begin : begin + rate // 5])
                await asyncio.sleep(0.1)
            await socket.send(json.dumps({"type": "end"}))

        speaking = asyncio.create_task(speak())
        async for message in socket:
            event = json.loads(message)
            if event["type"] == "translation":
                print(event["text"])
            elif event["type"] == "error":
                sys.exit(event["message"])
        await speaking


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", help="a WAV file with one channel and 16 bits")
    parser.add_argument("address", nargs="?", default=ADDRESS, help="of the server (default: %(default)s)")
    asyncio.run(main(**vars(parser.parse_args())))
