import { expect } from 'chai'
import fc from 'fast-check'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { EntryRegistry } from '../../../src/registry/entry-registry.ts'
import { MergedServices } from '../../../src/registry/merged-services.ts'
import type { ServiceEntry, WorkloadEntry } from '../../../src/registry/service-entries.ts'
import { runs } from '../../harness/seed.ts'
import { names } from '../../harness/settings.ts'

const object = <T>(kind: string, namespace: string, name: string, spec: string): T =>
  parseConfigFile('f', `{apiVersion: networking.mesh.io/v1, kind: ${kind}, metadata: {name: ${name}, namespace: ${namespace}}, spec: ${spec}}`, names)
    .objects[0] as T
const selecting = (namespace: string, app: string) =>
  object<ServiceEntry>(
    'ServiceEntry',
    namespace,
    's',
    `{hosts: [${app}.com], resolution: STATIC, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: '${app}'}}}`,
  )
const workload = (namespace: string, name: string, app: string) =>
  object<WorkloadEntry>('WorkloadEntry', namespace, name, `{address: 10.0.0.${name.length}, labels: {app: '${app}'}}`)

class Mesh {
  readonly faults = new Faults()
  readonly services = new MergedServices(this.faults)
  readonly entries = new EntryRegistry(this.services, names, this.faults)

  entry(before: ServiceEntry | undefined, now: ServiceEntry | undefined): void {
    const { namespace = '', name = '' } = now ?? before ?? {}
    this.entries.setEntry(`ServiceEntry/${namespace}/${name}`, before, now, now ? this.entries.recordsOf(now) : [])
  }

  /** Returns the addresses of each host, and the hosts that changed. */
  seen(): { [host: string]: string[] } {
    this.entries.reselect()
    const { services, hosts } = this.services.merge()
    return {
      ...Object.fromEntries(
        [...services].map(([host, states]) => [host, states.flatMap(({ endpoints }) => endpoints.map(({ address }) => address))]),
      ),
      changed: [...hosts],
    }
  }
}

describe('the registry of ServiceEntries and WorkloadEntries', () => {
  it('selects workloads of the same namespace, in any order of arrival', () => {
    const mesh = new Mesh()
    mesh.entries.setWorkload('WorkloadEntry/a/w', undefined, workload('a', 'w', 'x'))
    mesh.entry(undefined, selecting('a', 'x'))
    mesh.entry(undefined, selecting('b', 'y'))
    mesh.entries.setWorkload('WorkloadEntry/a/ww', undefined, workload('a', 'ww', 'x'))
    mesh.entries.setWorkload('WorkloadEntry/b/www', undefined, workload('b', 'www', 'x'))
    expect(mesh.seen()).to.deep.equal({ 'x.com': ['10.0.0.1', '10.0.0.2'], 'y.com': [], changed: ['x.com', 'y.com'] })
    mesh.entries.setWorkload('WorkloadEntry/b/www', workload('b', 'www', 'x'), workload('b', 'www', 'y'))
    expect(mesh.seen()).to.deep.equal({ 'x.com': ['10.0.0.1', '10.0.0.2'], 'y.com': ['10.0.0.3'], changed: ['y.com'] })
    mesh.entries.setWorkload('WorkloadEntry/a/w', workload('a', 'w', 'x'), undefined)
    expect(mesh.seen()).to.deep.include({ 'x.com': ['10.0.0.2'], changed: ['x.com'] })
  })

  it('drops hosts that an entry no longer names, and selects no workloads for a deleted entry', () => {
    const mesh = new Mesh()
    mesh.entry(undefined, selecting('a', 'x'))
    mesh.entry(selecting('a', 'x'), selecting('a', 'z'))
    expect(mesh.seen()).to.deep.include({ 'z.com': [] }).and.not.to.have.property('x.com')
    mesh.entry(selecting('a', 'z'), undefined)
    mesh.entries.setWorkload('WorkloadEntry/a/w', undefined, workload('a', 'w', 'z'))
    expect(mesh.seen()).to.deep.equal({ changed: ['z.com'] })
  })

  it('keeps the last good state of an entry whose workloads cannot be read, and updates other entries', () => {
    const mesh = new Mesh()
    mesh.entry(undefined, selecting('a', 'x'))
    mesh.entry(undefined, selecting('b', 'y'))
    mesh.entries.setWorkload('WorkloadEntry/a/w', undefined, workload('a', 'w', 'x'))
    mesh.seen()
    const broken = { ...workload('a', 'ww', 'x'), spec: undefined as never }
    mesh.entries.setWorkload('WorkloadEntry/a/ww', undefined, broken)
    mesh.entries.setWorkload('WorkloadEntry/b/www', undefined, workload('b', 'www', 'y'))
    expect(mesh.seen()).to.deep.equal({ 'x.com': ['10.0.0.1'], 'y.com': ['10.0.0.3'], changed: ['y.com'] })
    expect(mesh.faults.all().map(({ resource, consequence }) => `${resource}: ${consequence}`)).to.deep.equal([
      'ServiceEntry/a/s: the last good state stays',
    ])
    mesh.entries.setWorkload('WorkloadEntry/a/ww', broken, undefined)
    mesh.seen()
    expect(mesh.faults.all()).to.deep.equal([])
  })

  it('makes only the endpoints of the changed workloads again', () => {
    const mesh = new Mesh()
    mesh.entry(undefined, selecting('a', 'x'))
    for (const name of ['w', 'ww', 'www']) mesh.entries.setWorkload(`WorkloadEntry/a/${name}`, undefined, workload('a', name, 'x'))
    mesh.seen()
    const made: string[] = []
    const watched = (name: string, app: string) => {
      const object = workload('a', name, app)
      const address = object.spec.address
      return {
        ...object,
        spec: {
          ...object.spec,
          get address() {
            made.push(name)
            return address
          },
        },
      } as WorkloadEntry
    }
    for (const name of ['w', 'ww', 'www']) mesh.entries.setWorkload(`WorkloadEntry/a/${name}`, workload('a', name, 'x'), watched(name, 'x'))
    mesh.seen()
    made.length = 0
    mesh.entries.setWorkload('WorkloadEntry/a/ww', workload('a', 'ww', 'x'), watched('ww', 'x'))
    mesh.entries.setWorkload('WorkloadEntry/a/www', workload('a', 'www', 'x'), watched('www', 'y'))
    expect(mesh.seen()).to.deep.include({ 'x.com': ['10.0.0.1', '10.0.0.2'] })
    expect(new Set(made)).to.deep.equal(new Set(['ww']))
  })

  it('has after any history what a new registry has', () => {
    const app = fc.constantFrom('x', 'y', 'z')
    const step = fc.record({
      kind: fc.constantFrom('entry', 'workload'),
      name: fc.constantFrom('w', 'ww', 'www', 'wwww'),
      app: fc.option(app),
      age: fc.nat(2),
      seen: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const mesh = new Mesh()
        const entries = new Map<string, ServiceEntry>()
        const workloads = new Map<string, WorkloadEntry>()
        for (const { kind, name, app, age, seen } of steps) {
          if (kind === 'entry') {
            // One entry of the four selects every workload.
            const labels: Record<string, string> = name === 'wwww' ? {} : { app: app ?? '' }
            const whole = selecting('a', name)
            const now = app === null ? undefined : { ...whole, name, spec: { ...whole.spec, workloadSelector: { labels } } }
            mesh.entry(entries.get(name), now)
            if (now) entries.set(name, now)
            else entries.delete(name)
          } else {
            const now = app === null ? undefined : { ...workload('a', name, app), createdAt: age }
            mesh.entries.setWorkload(`WorkloadEntry/a/${name}`, workloads.get(name), now)
            if (now) workloads.set(name, now)
            else workloads.delete(name)
          }
          if (seen) mesh.seen()
        }
        const other = new Mesh()
        for (const [name, one] of workloads) other.entries.setWorkload(`WorkloadEntry/a/${name}`, undefined, one)
        for (const one of entries.values()) other.entry(undefined, one)
        expect({ ...mesh.seen(), changed: undefined }).to.deep.equal({ ...other.seen(), changed: undefined })
      }),
      { numRuns: runs(200) },
    )
  })
})
