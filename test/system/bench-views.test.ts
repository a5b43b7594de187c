import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { files } from '../../bench/mesh.ts'
import { type ShapeName, shapeFiles, shapes, viewersOf } from '../../bench/shapes.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const size = { namespaces: 5, services: 50 }
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('shapes of the benchmark in a running service', () => {
  for (const name of ['plain', 'sidecars', 'ten-hosts', 'default-export', 'mixed'] as ShapeName[])
    it(`${name}: proxies see the services that the benchmark expects, and no others of the plain mesh`, async () => {
      const shape = shapes[name]
      const service = new Service()
      const clients: XdsClient[] = []
      try {
        for (const [file, text] of [...files(size.services, size.namespaces), ...shapeFiles(shape, size)]) service.write(file, text)
        if (shape.mesh) service.write('mesh-config', shape.mesh)
        await service.start()
        for (const viewer of numbers(size.namespaces))
          clients.push(await new XdsClient(service.grpcPort, sidecarNode(`10.9.0.${viewer}`, 'p', `ns-${viewer}`), true).connect().ready())
        const seen = clients.map((client) => {
          const clusters = Object.keys(client.state()[clusterType] ?? {})
          return numbers(size.services).filter((number) =>
            clusters.includes(`outbound|80||svc-${number}.ns-${number % size.namespaces}.svc.cluster.local`),
          )
        })
        const wanted = numbers(size.namespaces).map((viewer) =>
          numbers(size.services).filter((number) => viewersOf(shape, number, size).includes(viewer)),
        )
        expect(seen).to.deep.equal(wanted)
      } finally {
        for (const client of clients) client.close()
        await service.dispose()
      }
    })
})

describe('npm run bench -- --set views', () => {
  const run = (...args: string[]) => {
    const script = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))
    return spawnSync(process.execPath, [script, '--set', 'views', '--mode', 'delta', '--namespaces', '3', ...args], { encoding: 'utf8' })
  }

  it('measures a shape beside the plain mesh, and reports which goals are met', () => {
    const { stdout, stderr, status } = run('--shape', 'private', '--rounds', '1')
    expect(status, stderr).to.equal(0)
    for (const step of ['connect', 'endpoint change', 'route change'])
      expect(stdout).to.match(new RegExp(`^\\| ${step} \\| private, 3 namespaces, delta \\|.* plain`, 'm'))
    expect(stdout).to.match(/^\| private, 3 namespaces, delta \| route change \| memory a view \|.*\| (met|\*\*missed\*\*) \|$/m)
  })

  it('ends a run that exceeds its limits with a reason, and continues with the next', () => {
    const { stdout, status } = run('--shape', 'sidecars', '--memory', '20')
    expect(status).to.equal(0)
    for (const name of ['plain', 'sidecars'])
      expect(stdout).to.match(
        new RegExp(`^\\| ended \\| ${name}, 3 namespaces, delta \\|.* the server was resident with more than 20 MiB during the start \\|$`, 'm'),
      )
  })

  it('rejects unknown shapes, sizes and modes', () => {
    expect(run('--shape', 'round').stderr).to.match(/--shape: "round" is not known; choose from plain, private, /)
    expect(run('--namespaces', '10,some').stderr).to.contain('--namespaces: "10,some" is not a list of whole numbers above 0')
    for (const [option, value] of [
      ['--proxies', 'abc'],
      ['--proxies', '0'],
      ['--rounds', '1.5'],
      ['--limit', '1,2'],
    ] as const)
      expect(run(option, value).stderr, value).to.contain(`${option}: "${value}" is not`)
    expect(run('--nosuch').stderr).to.contain("Unknown option '--nosuch'; --help lists the options")
  })

  it('prints the options, their defaults and the sets with --help, and runs nothing', () => {
    const { stdout, stderr, status } = run('--help')
    expect([stderr, status]).to.deep.equal(['', 0])
    expect(stdout).to.match(/^Usage: npm run bench -- \[options\]$/m)
    expect(stdout).to.match(/^ {2}--proxies 400 +number of simulated proxies$/m)
    expect(stdout).to.match(/^Sets: convergence, tls, .*\bsoak, views\.$/m)
  })
})
