/** Imports run one way: protocols <- src <- actors <- bin. No cycles. Threads and sockets only in actors. */
const io = '^(node:)?(worker_threads|net|http2?|https|tls|dgram|child_process|cluster)$'
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    { name: 'protocols-import-nothing', severity: 'error', from: { path: '^protocols/(?!generate)' }, to: { path: '^(src|actors|bin|bench|test)/' } },
    { name: 'src-is-below-actors', severity: 'error', from: { path: '^src/' }, to: { path: '^(actors|bin|bench|test)/' } },
    { name: 'actors-are-below-bin', severity: 'error', from: { path: '^actors/' }, to: { path: '^(bin|bench|test)/' } },
    {
      name: 'src-is-pure',
      severity: 'error',
      comment: 'src/cli makes one HTTP request: the request command',
      from: { path: '^src/(?!cli/)' },
      to: { path: io },
    },
    {
      name: 'src-knows-no-actors-library',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: 'node_modules/(comlink|piscina|chokidar)' },
    },
    { name: 'nothing-from-tests', severity: 'error', from: { pathNot: '^test/' }, to: { path: '^test/' } },
  ],
  options: {
    tsPreCompilationDeps: 'specify',
    doNotFollow: { path: ['node_modules', '^protocols/gen'] },
    exclude: { path: '^protocols/gen' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['node', 'import', 'types'] },
  },
}
