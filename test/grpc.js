// A server and a client of gRPC, by gRPC's own library for Node.js, to pass through a load balancer:
//   node grpc.js serve PORT NAME                  says "serving" once it does
//   node grpc.js ask HOST:PORT CERTIFICATE MORE   says "done", or what went wrong; MORE is how many messages a stream has
const grpc = require("@grpc/grpc-js");
const fs = require("fs");

const bytes = (message) => Buffer.from(message);
const text = (buffer) => buffer.toString();
const method = (name, requestStream, responseStream) => ({
  path: "/test.Echo/" + name,
  requestStream,
  responseStream,
  requestSerialize: bytes,
  requestDeserialize: text,
  responseSerialize: bytes,
  responseDeserialize: text,
});
const service = {
  say: method("Say", false, false),
  fail: method("Fail", false, false),
  count: method("Count", false, true),
  talk: method("Talk", true, true),
};

function serve(port, name) {
  const server = new grpc.Server();
  server.addService(service, {
    say(call, done) {
      const trailers = new grpc.Metadata();
      trailers.set("served-by", name);
      done(null, call.metadata.get("mine")[0] + " " + call.request, trailers);
    },
    fail(call, done) {
      done({ code: grpc.status.FAILED_PRECONDITION, details: "not “now”: " + call.request });
    },
    count(call) {
      for (let i = 0; i < Number(call.request); i++) call.write(String(i));
      call.end();
    },
    talk(call) {
      call.on("data", (word) => call.write(word.toUpperCase()));
      call.on("end", () => call.end());
    },
  });
  server.bindAsync("127.0.0.1:" + port, grpc.ServerCredentials.createInsecure(), (err) => {
    if (err) throw err;
    console.log("serving");
  });
}

async function ask(address, certificate, more) {
  const Client = grpc.makeGenericClientConstructor(service, "Echo");
  const client = new Client(address, grpc.credentials.createSsl(fs.readFileSync(certificate)), {
    "grpc.ssl_target_name_override": "example.com",
  });
  const expect = (what, got, wanted) => {
    if (got !== wanted) throw new Error(`${what}: ${got}, not ${wanted}`);
  };
  const metadata = new grpc.Metadata();
  metadata.set("mine", "kept");

  const servers = new Set();
  for (let i = 0; i < 20; i++) {
    await new Promise((resolve, reject) => {
      client
        .say("hello " + i, metadata, (err, answer) => {
          if (err) return reject(err);
          expect("an answer", answer, "kept hello " + i);
        })
        .on("status", (status) => {
          servers.add(status.metadata.get("served-by")[0]);
          resolve();
        });
    });
  }
  expect("servers", [...servers].sort().join(), "one,two");

  await new Promise((resolve, reject) => {
    client.fail("x", (err) => {
      try {
        expect("a status", err.code, grpc.status.FAILED_PRECONDITION);
        expect("its details", err.details, "not “now”: x");
        resolve();
      } catch (wrong) {
        reject(wrong);
      }
    });
  });

  let count = 0;
  for await (const message of client.count(String(more))) expect("a message", message, String(count++));
  expect("messages", count, more);

  // each word waits for the answer to the one before
  const talk = client.talk();
  const answers = talk[Symbol.asyncIterator]();
  for (const word of ["one", "two", "three"]) {
    talk.write(word);
    expect("a word", (await answers.next()).value, word.toUpperCase());
  }
  talk.end();
  expect("the end", (await answers.next()).done, true);

  await new Promise((resolve) => {
    client.makeUnaryRequest("/test.Echo/None", bytes, text, "x", (err) => {
      expect("a method that isn't there", err.code, grpc.status.UNIMPLEMENTED);
      resolve();
    });
  });
  await new Promise((resolve) => {
    client.talk({ deadline: Date.now() + 300 }).on("error", (err) => {
      expect("a deadline", err.code, grpc.status.DEADLINE_EXCEEDED);
      resolve();
    });
  });
  client.close();
  console.log("done");
}

const [what, ...args] = process.argv.slice(2);
if (what === "serve") serve(args[0], args[1]);
else ask(args[0], args[1], Number(args[2])).catch((err) => { console.error(err); process.exit(1); });
