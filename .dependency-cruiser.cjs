/** The imports that are allowed: protocols <- src <- actors <- bin, and from room to room, without cycles. Only actors import threads and sockets. */
const io = '^(node:)?(worker_threads|net|http2?|https|tls|dgram|child_process|cluster)$'

/** The rooms of the push path (ARCHITECTURE, "Rooms"). Each may import those before it. */
const pushPath = ['names', 'model', 'config', 'registry', 'snapshot', 'policy', 'identity', 'xds', 'push'].map((room) => `src/${room}`)

/** The rooms that a room may import, by room. All rooms may import protocols/. */
const rooms = {
  ...Object.fromEntries(pushPath.map((room, index) => [room, pushPath.slice(0, index)])),
  'src/push': [...pushPath.slice(0, -1), 'src/logging'],
  'src/ca': ['src/model', 'src/identity'],
  'src/agent': ['src/names', 'src/model', 'src/config', 'src/identity', 'src/xds', 'src/sts'],
  'src/bootstrap': ['src/names', 'src/config', 'src/agent'],
  'src/relay': ['src/model', 'src/xds'],
  'src/dns': ['src/names'],
  'src/iptables': ['src/config'],
  'src/health': ['src/config', 'src/xds'],
  'src/sts': ['src/names', 'src/config'],
  'src/cli': ['src/config', 'src/identity', 'src/bootstrap', 'src/iptables', 'src/logging'],
  'src/logging': [],
  'actors/runtime': ['src/model', 'src/logging'],
  'actors/http': ['src/config', 'src/snapshot', 'src/policy', 'src/identity', 'actors/runtime'],
  'actors/grpc': ['src/model', 'src/identity', 'src/xds', 'src/push', 'src/logging', 'actors/runtime', 'actors/http'],
  'actors/discovery': [...pushPath, 'src/ca', 'src/cli', 'src/logging', 'actors/runtime', 'actors/http', 'actors/grpc'],
  'actors/agent': [
    ...['src/names', 'src/model', 'src/config', 'src/identity', 'src/xds', 'src/push', 'src/ca', 'src/agent', 'src/bootstrap', 'src/relay'],
    ...['src/dns', 'src/iptables', 'src/health', 'src/sts', 'src/cli', 'src/logging', 'actors/runtime', 'actors/http', 'actors/grpc'],
  ],
}
rooms.bin = Object.keys(rooms)

const ruleOfRoom = ([room, allowed]) => ({
  name: `imports-of-${room}`,
  severity: 'error',
  from: { path: `^${room}/` },
  to: { path: '^(src|actors|bin|bench|test)/', pathNot: `^(${[room, ...allowed].join('|')})/` },
})

module.exports = {
  forbidden: [
    ...Object.entries(rooms).map(ruleOfRoom),
    {
      name: 'rooms-are-listed',
      severity: 'error',
      comment: 'each folder in src/ and actors/ has an entry in the table of rooms',
      from: { path: '^(src|actors)/', pathNot: `^(${Object.keys(rooms).join('|')})/` },
      to: {},
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
