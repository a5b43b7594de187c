import { expect } from 'chai'
import { denyingWebhook, invalidGateway, trialAnswer, trialLabels, triedBy, webhookChanges } from '../../../src/orchestrator/validation-webhook.ts'

const kind = { group: 'networking.mesh.io', version: 'v1beta1', kind: 'Gateway' }
const review = (object: object, isDryRun = true) => ({
  ...{ uid: '1', kind, resource: { group: kind.group, version: kind.version, resource: 'gateways' }, subResource: '', name: 'invalid-gateway' },
  ...{ namespace: 'mesh-system', operation: 'CREATE', user: 'a', isDryRun, object, oldObject: undefined },
})
const denied = { allowed: false, message: 'configuration is invalid: spec.servers[0].tls: required' }

describe('the trial of the validating webhook', () => {
  const trial = invalidGateway('networking.mesh.io', 'mesh-system', 'meshd-mesh-system', {})

  it('is known by its name and annotation, and only as a dry run', () => {
    expect(triedBy(review(trial))).to.equal('meshd-mesh-system')
    expect(triedBy(review(trial, false))).to.equal(undefined)
    expect(triedBy(review({ ...trial, metadata: { name: 'invalid-gateway' } }))).to.equal(undefined)
    expect(triedBy(review(null as never))).to.equal(undefined)
  })

  it('is denied by the control plane of its configuration, which the message names, and accepted by others', () => {
    const own = trialAnswer('meshd-mesh-system', 'meshd-mesh-system', denied)
    expect(own).to.deep.equal({ allowed: false, message: `${denied.message} (meshd-mesh-system)` })
    expect(trialAnswer('meshd-mesh-system', 'meshd-canary-mesh-system', denied)).to.deep.equal({ allowed: true })
    const said = `admission webhook "rev.validation.mesh.io" denied the request: ${own.message}`
    expect(denyingWebhook(said, 'meshd-mesh-system')).to.equal('rev.validation.mesh.io')
    for (const [message, tried] of [
      [said, 'meshd-canary-mesh-system'],
      [said.replace(' (meshd-mesh-system)', ''), 'meshd-mesh-system'],
      ['failed calling webhook "validation.mesh.io": connection refused (meshd-mesh-system)', 'meshd-mesh-system'],
    ] as const)
      expect(denyingWebhook(message, tried), message).to.equal(undefined)
  })

  it('is made for each way in which webhooks are chosen', () => {
    for (const none of ['', 'default']) expect(trialLabels(none)).to.deep.equal([{}])
    expect(trialLabels('canary')).to.deep.equal([{}, { 'mesh.io/rev': 'canary' }, { 'istio.io/rev': 'canary' }])
  })

  it('closes the webhooks that deny, each by itself', () => {
    const webhooks = [{ name: 'a', failurePolicy: 'Ignore' }, { name: 'b' }]
    const seen =
      (...names: string[]) =>
      (name: string) =>
        names.includes(name) ? 'Fail' : undefined
    expect(webhookChanges(webhooks, seen('a'), '')).to.deep.equal([
      { name: 'a', failurePolicy: 'Fail' },
      { name: 'b', failurePolicy: 'Fail' },
    ])
    expect(webhookChanges(webhooks, (name) => (name === 'a' ? 'Ignore' : 'Fail'), '')).to.equal(undefined)
    expect(webhookChanges(webhooks, (name) => (name === 'a' ? 'Fail' : 'Ignore'), '')).to.deep.equal([
      { name: 'a', failurePolicy: 'Fail' },
      { name: 'b', failurePolicy: 'Ignore' },
    ])
  })
})
