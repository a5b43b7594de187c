// Preloaded into a process to see how a bug ends it: SIGUSR2 throws an error that nothing catches.
process.on('SIGUSR2', () => {
  throw new TypeError('a bug')
})
