// Generates the wire types into protocols/gen/ (not committed). Runs as `prepare`, that is on install in a clone and on packing, and
// by hand with `npm run generate`. With --optional it is no error when the development dependencies are left out.
//
// Inputs: Envoy's v3 schemas as the package @grpc/grpc-js-xds ships them, and this project's own under protocols/proto/.
// Only the folders named below are compiled, with what they import: everything Envoy has takes forty seconds. Files that
// import the opencensus, opentelemetry or prometheus schemas, which that package leaves out, cannot be among them.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deflateRawSync } from 'node:zlib'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const require = createRequire(import.meta.url)
const envoyApi = 'node_modules/@grpc/grpc-js-xds/deps/envoy-api/envoy'

/** Folders (or files) of Envoy's schemas, below `envoy/`. */
const envoyPaths = [
  'admin/v3/config_dump_shared.proto',
  'config/bootstrap/v3',
  'config/cluster/v3',
  'config/core/v3',
  'config/endpoint/v3',
  'config/listener/v3',
  'config/metrics/v3',
  'config/rbac/v3',
  'config/route/v3',
  'config/trace/v3/datadog.proto',
  'config/trace/v3/zipkin.proto',
  'extensions/access_loggers/file/v3',
  'extensions/access_loggers/grpc/v3',
  'extensions/access_loggers/stream/v3',
  'extensions/compression/gzip/compressor/v3',
  'extensions/filters/common/fault/v3',
  'extensions/filters/http/buffer/v3',
  'extensions/filters/http/compressor/v3',
  'extensions/filters/http/cors/v3',
  'extensions/filters/http/csrf/v3',
  'extensions/filters/http/ext_authz/v3',
  'extensions/filters/http/fault/v3',
  'extensions/filters/http/grpc_stats/v3',
  'extensions/filters/http/grpc_web/v3',
  'extensions/filters/http/header_mutation/v3',
  'extensions/filters/http/health_check/v3',
  'extensions/filters/http/jwt_authn/v3',
  'extensions/filters/http/local_ratelimit/v3',
  'extensions/filters/http/lua/v3',
  'extensions/filters/http/ratelimit/v3',
  'extensions/filters/http/rbac/v3',
  'extensions/filters/http/router/v3',
  'extensions/filters/http/set_filter_state/v3',
  'extensions/filters/listener/http_inspector/v3',
  'extensions/filters/listener/original_dst/v3',
  'extensions/filters/listener/original_src/v3',
  'extensions/filters/listener/proxy_protocol/v3',
  'extensions/filters/listener/tls_inspector/v3',
  'extensions/filters/network/ext_authz/v3',
  'extensions/filters/network/http_connection_manager/v3',
  'extensions/filters/network/local_ratelimit/v3',
  'extensions/filters/network/mongo_proxy/v3',
  'extensions/filters/network/rbac/v3',
  'extensions/filters/network/redis_proxy/v3',
  'extensions/filters/network/sni_cluster/v3',
  'extensions/filters/network/tcp_proxy/v3',
  'extensions/filters/network/thrift_proxy/v3',
  'extensions/http/early_header_mutation/header_mutation/v3',
  'extensions/path/match/uri_template/v3',
  'extensions/retry/host/previous_hosts/v3',
  'extensions/retry/priority/previous_priorities/v3',
  'extensions/transport_sockets/proxy_protocol/v3',
  'extensions/transport_sockets/raw_buffer/v3',
  'extensions/transport_sockets/tls/v3',
  'extensions/upstreams/http/v3',
  'service/discovery/v3',
  'service/status/v3',
  'type/http/v3',
]

const tools = ['@bufbuild/buf', '@bufbuild/protoc-gen-es', '@grpc/grpc-js-xds'].map((name) => join('node_modules', name, 'package.json'))
const stamp = createHash('sha256')
for (const input of ['buf.yaml', 'buf.gen.yaml', 'protocols/generate.js', 'protocols/file-desc.js']) stamp.update(readFileSync(join(root, input)))
for (const input of tools) if (existsSync(join(root, input))) stamp.update(JSON.parse(readFileSync(join(root, input), 'utf8')).version)
const ownFiles = ['protocols/proto/contrib', 'protocols/proto/grpc', 'protocols/proto/mesh', 'protocols/proto/perftools', 'protocols/proto/validate']
for (const folder of ownFiles) {
  for (const file of readdirSync(join(root, folder), { recursive: true }).sort()) {
    if (String(file).endsWith('.proto')) stamp.update(readFileSync(join(root, folder, String(file))))
  }
}
const digest = stamp.digest('hex')
const gen = join(root, 'protocols/gen')
const stampFile = join(gen, '.stamp')
const current = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === digest

if (!current && process.argv.includes('--optional') && !tools.every((input) => existsSync(join(root, input)))) {
  if (!existsSync(stampFile))
    console.warn('The wire types are not generated: development dependencies are left out. Use dist/ of a build, or install all dependencies.')
} else if (!current) {
  buf('generate', [...envoyPaths.map((path) => `${envoyApi}/${path}`), ...ownFiles])
  copyFileSync(join(root, 'protocols/file-desc.js'), join(gen, 'file-desc.js'))
  for (const file of readdirSync(gen, { recursive: true })) if (String(file).endsWith('_pb.js')) useOwnFileDesc(String(file))
  writeExtensionTypes()
  writeFileSync(stampFile, digest)
}

/** Runs buf on these files and folders. */
function buf(command, paths, ...options) {
  const args = [require.resolve('@bufbuild/buf/bin/buf'), command, ...paths.flatMap((path) => ['--path', path]), ...options]
  const result = spawnSync(process.execPath, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: join(root, 'node_modules/.bin') + delimiter + process.env.PATH },
  })
  if (result.status === 0) return
  console.error('generating the wire types failed: see the lines of buf above')
  process.exit(1)
}

/**
 * Writes the schemas of all extensions that Envoy has as one packed text (a deflated FileDescriptorSet, 130 KB), for what EnvoyFilters name. As generated
 * code they would be 480 messages in 225 files that every start would load.
 */
function writeExtensionTypes() {
  const set = join(gen, 'extension-types.binpb')
  const packages = 'node_modules/@grpc/grpc-js-xds/deps/xds'
  const paths = [`${envoyApi}/extensions`, `${packages}/udpa/type`, `${packages}/xds/type`]
  buf(
    'build',
    paths,
    '--exclude-path',
    `${envoyApi}/extensions/access_loggers/open_telemetry`,
    '--exclude-source-info',
    '--as-file-descriptor-set',
    '-o',
    set,
  )
  const packed = deflateRawSync(readFileSync(set), { level: 9 }).toString('base64')
  rmSync(set)
  writeFileSync(join(gen, 'extension-types.js'), `export const extensionTypes = '${packed}'\n`)
  const comment = '/** The schemas of all extensions of Envoy and of what they import: a FileDescriptorSet, deflated, in base64. */'
  writeFileSync(join(gen, 'extension-types.d.ts'), `${comment}\nexport declare const extensionTypes: string\n`)
}

/** Has a generated file take `fileDesc` from file-desc.js instead of from the library. */
function useOwnFileDesc(file) {
  const path = join(gen, file)
  const library = 'from "@bufbuild/protobuf/codegenv2";'
  const own = `${'../'.repeat(file.split(/[\\/]/).length - 1) || './'}file-desc.js`
  const text = readFileSync(path, 'utf8')
  const changed = text.replace(
    new RegExp(`import \\{ ([^}]*)\\bfileDesc\\b,? ?([^}]*)\\} ${library}`),
    (_, before, after) => `${before + after === '' ? '' : `import { ${before}${after}} ${library}\n`}import { fileDesc } from "${own}";`,
  )
  if (changed === text) throw new Error(`${file} does not import fileDesc as expected`)
  writeFileSync(path, changed)
}
