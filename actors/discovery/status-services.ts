import type { Methods } from './grpc-server.ts'

export function statusServices(_ask: (question: string, ...details: unknown[]) => Promise<unknown>): Methods {
  return {}
}
