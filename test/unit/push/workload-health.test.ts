/** WorkloadEntries whose health is checked (docs/resources.md, S3). */
import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Planner } from '../../../src/push/planner.ts'
import { names, testSettings } from '../../harness/settings.ts'

describe('a WorkloadEntry whose health is checked', () => {
  const meshWith = (isEnabled: boolean) => {
    const planner = new Planner(testSettings({ PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: `${isEnabled}` }))
    const set = (text: string): boolean => {
      const { objects, faults } = parseConfigFile('f', text, names)
      expect(faults).to.deep.equal([])
      let isChanged = false
      for (const object of objects) isChanged = planner.state.setConfig(configKey(object), object) || isChanged
      planner.advance()
      return isChanged
    }
    set(
      '{apiVersion: networking.mesh.io/v1, kind: ServiceEntry, metadata: {name: vm, namespace: shop}, spec: {hosts: [vm.shop], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: vm}}}}',
    )
    const readiness = () =>
      (planner.state.current.services.get('vm.shop') ?? [])
        .flatMap(({ shards }) => shards.flatMap(({ slices }) => slices.flatMap(({ endpoints }) => endpoints)))
        .map((endpoint) => endpoint.readiness ?? 'ready')
    return { set, readiness }
  }
  const entry = (annotation: string, status: string) =>
    `{apiVersion: networking.mesh.io/v1, kind: WorkloadEntry, metadata: {name: vm, namespace: shop, annotations: {${annotation}}}, spec: {address: 192.0.2.7, labels: {app: vm}}, status: ${status}}`
  const checked = '"proxy.istio.io/health-checks-enabled": "true"'
  const condition = (type: string, status: string) => `{conditions: [{type: ${type}, status: "${status}"}]}`

  it('takes traffic only while its status says that it is healthy', () => {
    const { set, readiness } = meshWith(true)
    for (const [status, wanted] of [
      ['{}', 'unready'],
      [condition('Healthy', 'True'), 'ready'],
      [condition('Healthy', 'False'), 'unready'],
      [condition('Healthy', 'Unknown'), 'unready'],
      [condition('Other', 'True'), 'unready'],
      ['7', 'unready'],
    ] as const) {
      set(entry(checked, status))
      expect(readiness(), status).to.deep.equal([wanted])
    }
  })

  it('is no other object for another condition than that', () => {
    const { set } = meshWith(true)
    set(entry(checked, condition('Healthy', 'True')))
    expect(set(entry(checked, '{conditions: [{type: Healthy, status: "True", message: m}, {type: Other, status: "False"}]}'))).to.equal(false)
    expect(set(entry(checked, condition('Healthy', 'False')))).to.equal(true)
  })

  it('takes traffic whatever its status says without the annotation, and without the setting', () => {
    for (const [isEnabled, annotation] of [
      [true, ''],
      [true, '"proxy.istio.io/health-checks-enabled": "false"'],
      [false, checked],
    ] as const) {
      const { set, readiness } = meshWith(isEnabled)
      set(entry(annotation, condition('Healthy', 'False')))
      expect(readiness()).to.deep.equal(['ready'])
    }
  })
})
