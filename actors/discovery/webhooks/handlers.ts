/** What the webhooks do: the handlers of reviews. */
import type { HandlerMaker } from './admission-handler.ts'
import { validation } from './validation.ts'

/** The makers of all handlers. No two answer the same path. */
export const handlerMakers: readonly HandlerMaker[] = [validation]
