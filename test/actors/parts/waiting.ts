/** An actor that asks its supervisor to authenticate a token, and answers that question only when nobody waits for the answer any more. */
import type { ActorContext, ActorDefinition, Behaviour, BoundedAnswers } from '../../../actors/runtime/actor.ts'
import { patient } from '../../../actors/runtime/ask.ts'

class Waiting implements Behaviour<never> {
  readonly #context: ActorContext<object>
  readonly #seen: string[] = []

  constructor(context: ActorContext<object>) {
    this.#context = context
  }

  readonly asks = {
    authenticate: ((question, asking = patient) => {
      const rest = asking.restMs()
      this.#seen.push(`${question.token} with ${rest > 7000 && rest < 8000 ? 'nearly eight seconds' : rest < 300 ? 'little' : rest} left`)
      return new Promise((resolve) =>
        asking.signal.addEventListener('abort', () => {
          this.#seen.push(`${question.token}: ${(asking.signal.reason as Error).message}`)
          resolve({ refused: 'late' })
        }),
      )
    }) satisfies BoundedAnswers<'authenticate'>['authenticate'],
    begin: (token: string, withinMs: number) => {
      const asking = withinMs > 0 ? { ...patient, restMs: () => withinMs } : patient
      void this.#context.askFor(asking, 'authenticate', { token }).catch((error: Error) => this.#seen.push(`${token}: ${error.message}`))
    },
    seen: () => this.#seen,
  }

  receive(): void {}
}

export const actor: ActorDefinition<object, never> = { kind: 'waiting', start: (context) => new Waiting(context) }
