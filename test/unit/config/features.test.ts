import { expect } from 'chai'
import { parseDuration } from '../../../src/config/duration.ts'
import { discoveryVariables, readFeatures, variables } from '../../../src/config/features.ts'

describe('environment variables', () => {
  const all = Object.entries(discoveryVariables)

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

  it('without effect are named in a warning with the reason when they are set', () => {
    const { warnings } = readFeatures({ REQUIRE_3P_TOKEN: 'true', JWT_POLICY: 'first-party-jwt', ENABLE_WASM_TELEMETRY: 'true' })
    expect(warnings).to.deep.equal(['environment variable ENABLE_WASM_TELEMETRY has no effect: stock Envoy has no Wasm extension for telemetry'])
    expect(readFeatures({}).warnings).to.deep.equal([])
  })

  it('are reported in one error if several have invalid values', () => {
    expect(() => readFeatures({ PILOT_PUSH_THROTTLE: '0', PILOT_HTTP10: 'maybe', PILOT_STATUS_QPS: 'x' })).to.throw(
      'environment variable PILOT_HTTP10: "maybe" is not true or false; environment variable PILOT_PUSH_THROTTLE: "0" is not a whole number from 1 to 2147483647; environment variable PILOT_STATUS_QPS: "x" is not a number from 0 to 1000000000',
    )
  })
})
