// @vitest-environment node
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chunkReader, type ChunkReader } from "./chunks";

const recording = Uint8Array.from({ length: 1_200_000 }, (_, i) => i % 251);

/** Answers ranges as our server does, unless the path says otherwise. */
const server: Server = createServer((request, response) => {
  const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
  if (request.url === "/gone") return void response.writeHead(404).end();
  if (request.url === "/no-ranges" || !range) return void response.writeHead(200, { ETag: '"a"' }).end(recording);
  const start = Number(range[1]);
  const end = Math.min(Number(range[2]) + 1, recording.length);
  const total = request.url === "/unknown-size" ? "*" : recording.length;
  response.writeHead(206, { ETag: '"a"', "Content-Range": `bytes ${start}-${end - 1}/${total}` }).end(recording.subarray(start, end));
});
let origin = "";

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const reader = (path: string, etag: string | null = '"a"') => chunkReader(origin + path, etag, new AbortController().signal);

async function whole(read: ChunkReader) {
  const sizes: number[] = [];
  const bytes: number[] = [];
  for (let last = false; !last; ) {
    const chunk = await read(bytes.length);
    for (const byte of chunk.bytes) bytes.push(byte);
    sizes.push(chunk.bytes.length);
    last = chunk.last;
  }
  return { sizes, same: Uint8Array.from(bytes).every((byte, i) => byte === recording[i]), length: bytes.length };
}

describe("reading a recording by ranges", () => {
  it("takes half a megabyte at a time, to the end", async () => {
    expect(await whole(reader("/ranges"))).toEqual({ sizes: [524_288, 524_288, 151_424], same: true, length: recording.length });
  });

  it("ends with a short chunk when the size is not known", async () => {
    expect(await whole(reader("/unknown-size"))).toEqual({ sizes: [524_288, 524_288, 151_424], same: true, length: recording.length });
  });

  it("goes on in the middle, also where ranges are not known", async () => {
    for (const path of ["/ranges", "/no-ranges"]) {
      const { bytes, last } = await reader(path)(1_000_000);
      expect(last).toBe(true);
      expect(Buffer.compare(bytes, recording.subarray(1_000_000))).toBe(0);
    }
  });

  it("fails when the recording is gone or another one", async () => {
    await expect(reader("/gone")(0)).rejects.toThrow("404");
    await expect(reader("/ranges", '"b"')(0)).rejects.toThrow("replaced");
  });
});
