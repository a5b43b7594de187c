/** The writer of statuses tells of a failure for as long as it has something to write (docs/status.md, S9). */
import { expect } from 'chai'
import { actor } from '../../actors/discovery/leader/status-writer.ts'
import { attentionNote } from '../../protocols/messages/notes.ts'
import type { MeshObject } from '../../protocols/messages/object-status.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { until } from '../harness/until.ts'

const object: MeshObject = {
  ...{ key: 'Gateway/ns/a', group: 'networking.mesh.io', version: 'v1', plural: 'gateways', namespace: 'ns', name: 'a' },
  ...{ uid: 'u', resourceVersion: '1', generation: 1, fault: '', status: undefined },
}
const config = { reconciled: false, analysis: true, perSecond: 0, burst: 10, settleMs: 0 }
const source = new RecordingPeer<never>('source/orchestrator')

/** A writer whose write has failed, with what it notes. */
async function troubled() {
  let notes: readonly string[] = []
  const term = Promise.withResolvers<number>()
  const terms = [Promise.resolve(1), term.promise]
  const answers: Record<string, () => Promise<unknown>> = {
    leadership: () => terms.shift() ?? new Promise(() => undefined),
    writeStatus: () => Promise.resolve({ outcome: 'failed', reason: 'not permitted', concerns: 'object' }),
  }
  const writer = await startActor(actor, config, {
    ask: (question) => answers[question]?.() ?? Promise.reject(new Error(question)),
    noted: (name, value) => {
      if (name === attentionNote) notes = value as readonly string[]
    },
  })
  writer.receive({ type: 'MeshObjectChanged', id: 'a', object }, source)
  const messages = [{ code: 'IST0101', name: 'ReferencedResourceNotFound', level: 'error', path: '', message: 'there is no service a' }] as const
  writer.receive({ type: 'ObjectAnalysed', key: object.key, messages }, source)
  const says = (...lines: string[]) => until(`the notes ${lines.join()}`, () => notes.join() === lines.join())
  await says('the status of gateways.networking.mesh.io ns/a cannot be written: not permitted; it is tried again')
  return { writer, says, ended: term.resolve }
}

describe('the writer of statuses', () => {
  it('no longer tells of an object that could not be written when the object is gone', async () => {
    const { writer, says } = await troubled()
    writer.receive({ type: 'MeshObjectChanged', id: 'a', object: undefined }, source)
    await says()
    await writer.drain?.()
  })

  it('no longer tells of one when another replica leads', async () => {
    const { writer, says, ended } = await troubled()
    ended(0)
    await says()
    expect(await writer.drain?.()).to.equal(undefined)
  })
})
