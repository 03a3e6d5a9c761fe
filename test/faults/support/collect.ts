/** Loaded into a measured daemon: at SIGUSR2 it collects garbage and prints how many bytes it still holds. */
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.stderr.write(`holds ${heapUsed + external}\n`);
});
