import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { discoveryFlags, discoveryLogging, rootFlags } from '../../../src/cli/discovery-flags.ts'
import { notYetOf } from '../../../src/cli/flags.ts'
import { agentVariables } from '../../../src/config/agent-features.ts'
import { parseDuration } from '../../../src/config/duration.ts'
import { hasEffect, readFeatures, variables } from '../../../src/config/features.ts'
import { unbuiltVariables } from '../../../src/config/unbuilt-variables.ts'
import type { Variable } from '../../../src/config/variable.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const tables = ['agent-features.ts', 'features.ts', 'unbuilt-variables.ts']
const sources = ['src', 'actors']
  .flatMap((room) =>
    readdirSync(join(root, room), { recursive: true, withFileTypes: true })
      .filter((file) => file.name.endsWith('.ts') && !tables.includes(file.name))
      .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8')),
  )
  .join('\n')
const isRead = (name: string) => new RegExp(`\\.${name}\\b|\\b${name}\\b.* } = |'${name}'`).test(sources)

describe('documentation of variables and flags', () => {
  // The converse holds by type: `Features` and `FlagValues` have no field for variables and flags without effect.
  it('declares no variable as effective that no source reads', () => {
    expect(Object.keys({ ...variables, ...agentVariables }).filter((name) => !isRead(name))).to.deep.equal([])
  })

  it('declares no flag as effective that no source reads', () => {
    const flags = { ...rootFlags, ...discoveryLogging, ...discoveryFlags }
    const idle = Object.entries(flags).filter(([name, spec]) => notYetOf(spec) === undefined && !isRead(name))
    expect(idle.map(([name]) => name)).to.deep.equal([])
  })

  it('declares no variable as both effective and without effect, and no source reads one without effect', () => {
    const isReadOfFeatures = (name: string) => new RegExp(`eatures[.)]*\\??\\.${name}\\b`).test(sources)
    expect(Object.keys(variables).filter(isReadOfFeatures).length, 'reads that the expression finds').to.be.above(10)
    for (const name of Object.keys(unbuiltVariables)) {
      expect(hasEffect(name), name).to.equal(false)
      expect(isReadOfFeatures(name), name).to.equal(false)
    }
  })
})

describe('environment variables', () => {
  const all = Object.entries<Variable>({ ...variables, ...unbuiltVariables })

  it('include those of the specification, with its defaults', () => {
    expect(all.map(([name]) => name)).to.include.members([
      'PILOT_DEBOUNCE_AFTER',
      'CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE',
      'VALIDATION_WEBHOOK_CONFIG_NAME',
      'MESH_GPRC_MAXRECVMSGSIZE',
    ])
    expect([variables.PILOT_DEBOUNCE_MAX.default, variables.PILOT_XDS_SEND_TIMEOUT.default, variables.MAX_WORKLOAD_CERT_TTL.default]).to.deep.equal([
      '10s',
      '5s',
      '2160h0m0s',
    ])
  })

  for (const [name, variable] of all) {
    if (!('range' in variable)) continue
    const [least, most] = variable.range
    it(`${name} accepts values from ${least} to ${most} only`, () => {
      const reading = (value: string | number) => () => readFeatures({ [name]: String(value) })
      for (const value of [variable.default, least, most]) expect(reading(value), String(value)).not.to.throw()
      const beyond = variable.type === 'duration' ? ['99999999h', '-99999999h', '5', 'soon'] : [Number(most) * 10 + 1, '1e400', '0x10', 'many']
      for (const value of beyond)
        expect(reading(value))
          .to.throw(`environment variable ${name}: "${value}" is not`)
          .with.property('message')
          .that.contains(`from ${least} to ${most}`)
      const limit = typeof least === 'number' ? least : (parseDuration(least) as number)
      if (limit >= 0) expect(reading(variable.type === 'duration' ? '-1ms' : '-1')).to.throw(`environment variable ${name}: "-1`)
    })
  }

  it('are read under the names of the reference too, which come second', () => {
    const { features } = readFeatures({ KUBERNETES_SERVICE_HOST: '10.0.0.1', ISTIO_GPRC_MAXSTREAMS: '7', MESH_GPRC_MAXSTREAMS: '9' })
    expect([features.ORCHESTRATOR_SERVICE_HOST, features.MESH_GPRC_MAXSTREAMS]).to.deep.equal(['10.0.0.1', 9])
  })

  it('are reported in one error if several have invalid values', () => {
    expect(() => readFeatures({ PILOT_PUSH_THROTTLE: '0', PILOT_HTTP10: 'maybe', PILOT_STATUS_QPS: 'x' })).to.throw(
      'environment variable PILOT_HTTP10: "maybe" is not true or false; environment variable PILOT_PUSH_THROTTLE: "0" is not a whole number from 1 to 2147483647; environment variable PILOT_STATUS_QPS: "x" is not a number from 0 to 1000000000',
    )
  })
})
