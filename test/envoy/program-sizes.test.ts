import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { envoyBinaries } from '../harness/envoy.ts'
import { countedSizes } from '../harness/program-sizes.ts'
import { until } from '../harness/until.ts'

const typed = (type: string, fields: object) => ({ '@type': `type.googleapis.com/envoy.${type}`, ...fields })

/** A listener with one regular expression. */
const listener = (regex: string, index: number) =>
  typed('config.listener.v3.Listener', {
    name: `L${index}_`,
    address: { socket_address: { address: `127.9.${index >> 8}.${index & 255}`, port_value: 1 } },
    bind_to_port: false,
    filter_chains: [
      {
        filters: [
          {
            name: 'rbac',
            typed_config: typed('extensions.filters.network.rbac.v3.RBAC', {
              stat_prefix: 'x',
              rules: { policies: { a: { permissions: [{ requested_server_name: { safe_regex: { regex } } }], principals: [{ any: true }] } } },
            }),
          },
          { name: 'tcp', typed_config: typed('extensions.filters.network.tcp_proxy.v3.TcpProxy', { stat_prefix: 'x', cluster: 'x' }) },
        ],
      },
    ],
  })

for (const { version, path } of envoyBinaries()) {
  describe(`program sizes of regular expressions in Envoy ${version}`, () => {
    it('equal the recorded sizes, and in other releases do not exceed them', async () => {
      const dir = mkdtempSync(join(tmpdir(), 'mesh-sizes-'))
      const file = (name: string, content: object) => writeFileSync(join(dir, name), JSON.stringify(content))
      file('listeners.json', { resources: countedSizes.map(([pattern], at) => listener(pattern, at)) })
      // With a maximum size of 0, Envoy rejects each expression and logs its size.
      file('bootstrap.json', {
        node: { id: 'sizes', cluster: 'sizes' },
        dynamic_resources: { lds_config: { path_config_source: { path: join(dir, 'listeners.json') } } },
        layered_runtime: { layers: [{ name: 'static', static_layer: { 're2.max_program_size.error_level': 0 } }] },
      })
      const child = spawn(path, ['-c', join(dir, 'bootstrap.json'), '--use-dynamic-base-id', '--concurrency', '1', '-l', 'warning'])
      let log = ''
      child.stderr.on('data', (bytes) => (log += bytes))
      const sizes = () => new Map([...log.matchAll(/L(\d+)_: regex .*? program size of (\d+) /gs)].map(([, at, size]) => [Number(at), Number(size)]))
      try {
        await until('all to be refused', () => sizes().size === countedSizes.length)
      } finally {
        child.kill('SIGKILL')
        rmSync(dir, { recursive: true, force: true })
      }
      const found = sizes()
      for (const [at, [pattern, oldest, newest]] of countedSizes.entries()) {
        const known = { 1.36: oldest, 1.4: newest }[Number(version)]
        if (known === undefined) expect(found.get(at), pattern).to.be.at.most(Math.max(oldest, newest))
        else expect(found.get(at), pattern).to.equal(known)
      }
    })
  })
}
