// The end of stdin means that the client has exited. Answers get 5 s to be written and a minute to
// be read. The timers do not keep Node alive.
for (const event of ['end', 'close']) {
  process.stdin.on(event, () => {
    setTimeout(() => process.stdout.write('', () => process.exit(0)), 5000).unref();
    setTimeout(() => process.exit(0), 60000).unref();
  });
}
