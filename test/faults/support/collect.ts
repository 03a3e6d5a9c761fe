/** Loaded into a measured daemon: at SIGUSR2 it throws its garbage away and says how many bytes it still holds. */
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.stderr.write(`holds ${heapUsed + external}\n`);
});
