/** What the webhooks do: the handlers of reviews. */
import type { HandlerMaker } from './admission-handler.ts'
import { injection } from './injection.ts'
import { validation } from './validation.ts'

/** The makers of all handlers. No two answer the same path. */
export const handlerMakers: readonly HandlerMaker[] = [validation, injection]
