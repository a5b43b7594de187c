/**
 * Golden files of injection: `golden/<behaviour>/in.yaml` has settings in its first document and a pod in its second, `out.yaml` the pod with its
 * sidecar. UPDATE_GOLDEN=1 rewrites the outputs.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { injected, injectionConfiguration, injectionSettings } from '../../harness/injection.ts'

const root = new URL('golden/', import.meta.url)

interface Head {
  readonly config?: object
  readonly values?: object
  readonly mesh?: object
  readonly revision?: string
  readonly namespace?: string
  readonly nativeSidecars?: boolean
}

describe('injection golden', () => {
  for (const name of readdirSync(root))
    it(name, () => {
      const [head, pod] = parseAllDocuments(readFileSync(new URL(`${name}/in.yaml`, root), 'utf8')).map((document) => document.toJS()) as [
        Head,
        object,
      ]
      const mesh = readMeshConfig(JSON.stringify(head.mesh ?? {}))
      if ('error' in mesh) throw new Error(mesh.error)
      const settings = injectionSettings({
        configuration: injectionConfiguration(head.config, head.values),
        mesh: mesh.value,
        revision: head.revision ?? '',
        hasNativeSidecars: head.nativeSidecars ?? false,
      })
      const made = injected(pod, settings, head.namespace === undefined ? {} : { namespace: head.namespace })
      const file = new URL(`${name}/out.yaml`, root)
      if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, stringify(made, { lineWidth: 0, aliasDuplicateObjects: false }))
      expect(made).to.deep.equal(parse(readFileSync(file, 'utf8')))
    })
})
