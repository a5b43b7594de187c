/**
 * Golden files: `<behaviour>/in.yaml` holds a first document that says who asks (`proxy:`, `show:` which resources) and then the
 * configuration; `out.json` holds what that proxy gets. UPDATE_GOLDEN=1 writes the files anew and removes those without input.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse } from 'yaml'
import { configDump, loadAssignments } from '../../actors/discovery/config-dump.ts'
import { configKey } from '../../src/config/kinds.ts'
import { readMeshConfig } from '../../src/config/mesh-config.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { hostOf } from '../../src/xds/names.ts'
import { names, testSettings } from '../harness/settings.ts'

const root = fileURLToPath(new URL('.', import.meta.url))

interface Head {
  readonly proxy: { readonly id: string; readonly metadata?: Record<string, unknown> }
  /** Resource names by section, for instance `clusters: [a, b]`; without a list all of them. */
  readonly show: Readonly<Record<'clusters' | 'endpoints' | 'listeners' | 'routes', readonly string[] | true | undefined>>
  readonly env?: Record<string, string>
  readonly mesh?: object
}

type Named = { name?: string; cluster_name?: string }

function generate(content: string): unknown {
  const cut = content.indexOf('\n---\n')
  const head = parse(content.slice(0, cut)) as Head
  const { objects, faults } = parseConfigFile('in.yaml', content.slice(cut + 5), names)
  expect(faults).to.deep.equal([])
  const planner = new Planner(testSettings(head.env ?? {}))
  if (head.mesh) {
    const mesh = readMeshConfig(JSON.stringify(head.mesh))
    if ('error' in mesh) throw new Error(mesh.error)
    planner.state.setMesh(mesh.value)
  }
  for (const object of objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  planner.connect('proxy', readNode({ id: head.proxy.id, metadata: head.proxy.metadata ?? {}, locality: undefined }, names, false))
  const push = planner.takePush()
  expect(planner.faults.all()).to.deep.equal([])
  const groups = push.manifests[0]?.groups ?? {}
  const slabs = new Map(push.slabs.map((slab) => [slab.id, Buffer.from(slab.bytes)]))
  const resources = Object.fromEntries(
    Object.entries(groups).map(([typeUrl, uses]) => [
      typeUrl,
      uses.flatMap(({ group, hide }) =>
        (push.groups.find((patch) => patch.group === group)?.changed ?? []).filter(({ name }) => !hide.includes(hostOf(typeUrl, name))).map((data) => {
          const chunks: Buffer[] = []
          for (let at = 0; at < data.slices.length; at += 3) chunks.push(slabs.get(data.slices[at] as number)?.subarray(data.slices[at + 1], (data.slices[at + 1] as number) + (data.slices[at + 2] as number)) as Buffer)
          return { name: data.name, version: '', element: Buffer.concat(chunks).toString('base64') }
        }),
      ),
    ]),
  )
  const [clusters, listeners, routes] = (configDump(resources) as { configs: Record<string, { cluster?: Named; active_state?: { listener: Named }; route_config?: Named }[]>[] }).configs
  const sections: Record<string, Named[]> = {
    clusters: (clusters?.dynamic_active_clusters ?? []).map((entry) => entry.cluster as Named),
    endpoints: loadAssignments(resources) as Named[],
    listeners: (listeners?.dynamic_listeners ?? []).map((entry) => entry.active_state?.listener as Named),
    routes: (routes?.dynamic_route_configs ?? []).map((entry) => entry.route_config as Named),
  }
  return Object.fromEntries(
    Object.entries(head.show).map(([section, wanted]) => [section, (sections[section] ?? []).filter((resource) => wanted === true || wanted?.includes(resource.name ?? resource.cluster_name ?? ''))]),
  )
}

describe('golden files', () => {
  for (const folder of readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name)) {
    const input = join(root, folder, 'in.yaml')
    const output = join(root, folder, 'out.json')
    if (!existsSync(input)) {
      if (process.env.UPDATE_GOLDEN) rmSync(join(root, folder), { recursive: true })
      continue
    }
    it(folder, () => {
      const made = `${JSON.stringify(generate(readFileSync(input, 'utf8')), null, 2)}\n`
      if (process.env.UPDATE_GOLDEN) writeFileSync(output, made)
      expect(JSON.parse(made)).to.deep.equal(JSON.parse(readFileSync(output, 'utf8')))
    })
  }
})
