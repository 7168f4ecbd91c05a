import { createServer } from "node:http";

/** A receiver of webhooks that keeps what it was sent. */
export async function startReceiver() {
  const received = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ method: request.method, headers: request.headers, body: JSON.parse(body) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/hook`,
    received,
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}
