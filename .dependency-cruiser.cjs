/** Imports run one way: protocols <- src <- actors <- bin, and within them from room to room. No cycles. Threads and sockets only in actors. */
const io = '^(node:)?(worker_threads|net|http2?|https|tls|dgram|child_process|cluster)$'

/** Rooms in the order in which they build on each other: none knows one that comes later. */
const inOrder = (root, ...rooms) =>
  rooms.slice(0, -1).map((room, index) => ({
    name: `${root}/${room}-is-below-${rooms[index + 1]}`,
    severity: 'error',
    from: { path: `^${root}/${room}/` },
    to: { path: `^${root}/(${rooms.slice(index + 1).join('|')})/` },
  }))

module.exports = {
  forbidden: [
    ...inOrder('src', 'names', 'model', 'config', 'registry', 'snapshot', 'policy', 'identity', 'xds', 'push'),
    ...inOrder('actors', 'runtime', 'http', 'grpc', 'discovery'),
    {
      name: 'the-push-path-knows-no-command-line',
      severity: 'error',
      from: { path: '^src/(names|model|config|registry|snapshot|policy|identity|xds|push)/' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'the-push-path-knows-no-agent',
      severity: 'error',
      from: { path: '^src/(?!agent/|bootstrap/|cli/|dns/|health/|iptables/|relay/|sts/)' },
      to: { path: '^src/(agent|bootstrap|dns|health|iptables|relay|sts)/' },
    },
    {
      name: 'the-bootstrap-stands-on-the-settings-of-the-agent',
      severity: 'error',
      from: { path: '^src/agent/' },
      to: { path: '^src/bootstrap/' },
    },
    {
      name: 'agent-and-service-know-nothing-of-each-other',
      severity: 'error',
      comment: 'what both serve with stands in actors/grpc and actors/http',
      from: { path: '^actors/(agent|discovery)/' },
      to: { path: '^actors/(?!$1/)(agent|discovery)/' },
    },
    {
      name: 'policies-know-no-Envoy',
      severity: 'error',
      comment: 'what rules and tokens mean is said without the messages that enforce it',
      from: { path: '^src/(names|model|config|registry|snapshot|policy|identity)/' },
      to: { path: '^protocols/gen/envoy' },
    },
    {
      name: 'parts-share-only-data',
      severity: 'error',
      comment: 'the parts of the service speak in messages; the pages and the wiring name what they ask for',
      from: { path: '^actors/discovery/(sources|push-queue|xds-writer|key-sets|certificates|identity|authority)/' },
      to: { path: '^actors/discovery/(?!$1/)[^/]+/' },
    },
    {
      name: 'parts-of-the-agent-share-only-data',
      severity: 'error',
      comment: 'the parts of the agent speak in messages; what they read of tokens, roots and certificates stands in actors/agent/credentials',
      from: { path: '^actors/agent/(?!commands/)([^/]+)/' },
      to: { path: '^actors/agent/(?!$1/|credentials/)[^/]+/' },
    },
    {
      name: 'private-keys-stay-with-signers',
      severity: 'error',
      comment: 'the private keys of the authority are read and made in signer threads, and by the ca command in its own process',
      from: { path: '^(src|actors)/', pathNot: '^actors/discovery/authority/(sign[^/]*|authority-files)[.]ts$' },
      to: { path: '^actors/discovery/authority/key-storage[.]ts$' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    { name: 'protocols-import-nothing', severity: 'error', from: { path: '^protocols/(?!generate)' }, to: { path: '^(src|actors|bin|bench|test)/' } },
    { name: 'src-is-below-actors', severity: 'error', from: { path: '^src/' }, to: { path: '^(actors|bin|bench|test)/' } },
    { name: 'actors-are-below-bin', severity: 'error', from: { path: '^actors/' }, to: { path: '^(bin|bench|test)/' } },
    {
      name: 'src-is-pure',
      severity: 'error',
      comment: 'src/cli asks the running server over its admin socket',
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
    parser: 'swc',
    tsPreCompilationDeps: 'specify',
    doNotFollow: { path: ['node_modules', '^protocols/gen'] },
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['node', 'import', 'types'] },
  },
}
