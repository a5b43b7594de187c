/** Import rules (ARCHITECTURE, "Rooms"). */

/** Modules of Node that make threads, processes or sockets. */
const io = '^(node:)?(worker_threads|fs|fs/promises|net|http2?|https|tls|dgram|child_process|cluster)$'

/** The rooms of the push path (ARCHITECTURE, "Rooms"). Each may import those before it. */
const pushPath = ['names', 'model', 'config', 'registry', 'snapshot', 'policy', 'identity', 'xds', 'push'].map((room) => `src/${room}`)

/** By room the rooms that it may import. All rooms may import protocols/. */
const rooms = {
  ...Object.fromEntries(pushPath.map((room, index) => [room, pushPath.slice(0, index)])),
  'src/push': [...pushPath.slice(0, -1), 'src/logging'],
  'src/orchestrator': ['src/names', 'src/model', 'src/config', 'src/registry'],
  'src/analysis': [
    'src/names',
    'src/model',
    'src/config',
    'src/registry',
    'src/snapshot',
    'src/policy',
    'src/orchestrator',
    'src/inject',
    'src/logging',
  ],
  'src/status': ['src/model', 'src/config', 'src/orchestrator'],
  'src/transport': ['src/model'],
  'src/ca': ['src/model', 'src/identity'],
  'src/keystore': [],
  'src/agent': ['src/names', 'src/model', 'src/config', 'src/identity', 'src/xds', 'src/sts'],
  'src/template': ['src/identity', 'src/ca'],
  'src/inject': ['src/names', 'src/model', 'src/config', 'src/snapshot', 'src/template', 'src/bootstrap', 'src/logging'],
  'src/bootstrap': ['src/names', 'src/config', 'src/agent', 'src/sts', 'src/template'],
  'src/relay': ['src/model', 'src/xds'],
  'src/dns': ['src/names'],
  'src/iptables': ['src/config'],
  'src/health': ['src/config', 'src/xds'],
  'src/sts': ['src/names', 'src/config'],
  'src/cli': ['src/names', 'src/model', 'src/config', 'src/analysis', 'src/identity', 'src/bootstrap', 'src/iptables', 'src/logging'],
  'src/logging': [],
  'actors/runtime': ['src/model', 'src/logging'],
  'actors/rpc': ['src/model', 'src/identity', 'actors/runtime'],
  'actors/http': [
    'src/model',
    'src/config',
    'src/snapshot',
    'src/policy',
    'src/identity',
    'src/dns',
    'src/cli',
    'src/logging',
    'actors/runtime',
    'actors/rpc',
  ],
  'actors/grpc': ['src/model', 'src/identity', 'src/xds', 'src/transport', 'src/logging', 'actors/runtime', 'actors/rpc', 'actors/http'],
  'actors/discovery': [
    ...[
      ...pushPath,
      'src/template',
      'src/inject',
      'src/orchestrator',
      'src/analysis',
      'src/status',
      'src/transport',
      'src/ca',
      'src/keystore',
      'src/cli',
      'src/logging',
    ],
    ...['actors/runtime', 'actors/rpc', 'actors/http', 'actors/grpc'],
  ],
  'actors/agent': [
    ...[
      'src/names',
      'src/model',
      'src/config',
      'src/identity',
      'src/xds',
      'src/transport',
      'src/ca',
      'src/keystore',
      'src/agent',
      'src/template',
      'src/bootstrap',
    ],
    ...['src/relay', 'src/dns', 'src/iptables', 'src/health', 'src/sts', 'src/cli', 'src/logging', 'actors/runtime', 'actors/http', 'actors/grpc'],
  ],
  'actors/quickstart': ['src/agent', 'src/cli', 'src/logging', 'actors/runtime', 'actors/http', 'actors/agent'],
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
      name: 'policies-without-envoy-messages',
      severity: 'error',
      comment: 'the rooms before src/xds import no messages of Envoy',
      from: { path: '^src/(names|model|config|registry|snapshot|policy|identity)/' },
      to: { path: '^protocols/gen/envoy' },
    },
    {
      name: 'service-actors-import-no-other-actor',
      severity: 'error',
      comment:
        'the folder of an actor imports no other folder in actors/discovery but cluster/, events/, given/, leader/, own-keys/ and tokens/; admin/, commands/ and the files beside the folders may',
      from: { path: '^actors/discovery/(sources|push-queue|analyzer|xds-writer|key-sets|certificates|identity|authority|distribution|webhooks)/' },
      to: { path: '^actors/discovery/(?!$1/|cluster/|events/|given/|leader/|own-keys/|tokens/)[^/]+/' },
    },
    {
      name: 'agent-actors-import-no-other-actor',
      severity: 'error',
      comment: 'a folder in actors/agent imports no other one but credentials/; commands/ and the files beside the folders may',
      from: { path: '^actors/agent/(?!commands/)([^/]+)/' },
      to: { path: '^actors/agent/(?!$1/|credentials/)[^/]+/' },
    },
    {
      name: 'only-signers-import-key-storage',
      severity: 'error',
      comment: 'signer threads, and the ca command in its own process, read and make the private keys of the authority',
      from: { path: '^(src|actors)/', pathNot: '^actors/discovery/authority/(sign[^/]*|authority-files)[.]ts$' },
      to: { path: '^actors/discovery/authority/key-storage[.]ts$' },
    },
    {
      name: 'key-stores-are-loaded-when-needed',
      severity: 'error',
      comment: 'node-forge costs 30 ms and 8 MB: only src/keystore imports it, and others import its readers and writers when there is a key store',
      from: { path: '^(src|actors)/', pathNot: '^src/keystore/' },
      to: { path: '(node_modules/node-forge|^src/keystore/(pkcs|asn1|encryption))', dependencyTypesNot: ['dynamic-import', 'type-only'] },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    {
      name: 'protocols-import-no-other-folder',
      severity: 'error',
      from: { path: '^protocols/(?!generate)' },
      to: { path: '^(src|actors|bin|bench|test)/' },
    },
    {
      name: 'src-without-threads-and-sockets',
      severity: 'error',
      comment: 'commands call the running server over its admin socket, and read the version of the package',
      from: { path: '^src/(?!cli/(admin-socket|build-info)[.]ts$)' },
      to: { path: io },
    },
    {
      name: 'src-without-libraries-of-actors',
      severity: 'error',
      comment: 'libraries for threads are imported by actors only',
      from: { path: '^src/' },
      to: { path: 'node_modules/(comlink|piscina)' },
    },
    {
      name: 'only-commands-load-the-command-line-library',
      severity: 'error',
      comment: 'threads and servers take defaults of flags from src/cli/defaults.ts',
      from: { path: '^actors/' },
      to: { path: '(node_modules/@oclif|^src/cli/(flags|.*-flags|.*-command|.*-options|pflag)[.]ts$)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only-the-log-imports-its-library',
      severity: 'error',
      comment: 'other modules, and all that threads load, make records of log lines (actors/runtime/logger.ts)',
      from: { path: '^(protocols|src|actors|bin|bench)/', pathNot: '^actors/runtime/log[.]ts$' },
      to: { path: 'node_modules/pino' },
    },
    {
      name: 'only-main-threads-open-the-log',
      severity: 'error',
      comment: 'commands open the log on their main thread; threads send it records',
      from: { path: '^(src|actors|bin|bench)/', pathNot: '^actors/(agent/(main|service|commands/wait)|discovery/service)[.]ts$' },
      to: { path: '^actors/runtime/log[.]ts$' },
    },
    {
      name: 'only-tests-import-tests',
      severity: 'error',
      from: { pathNot: '^(test/|bench/server[.]ts$|bench/scenarios/(clusters|orchestrator|replicas|statuses|webhooks)[.]ts$)' },
      to: { path: '^test/' },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: 'specify',
    doNotFollow: { path: ['node_modules', '^protocols/gen'] },
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['node', 'import', 'types'] },
  },
}
