/** All cases of the policy matrix: policies, requests, and the status that Envoy and `/debug/authz` must give each request. */
import { actionCases } from './actions.ts'
import { headerCases } from './headers.ts'
import { hostCases } from './hosts.ts'
import { tokenCases } from './identities.ts'
import { pathCases } from './paths.ts'
import type { Case } from './shape.ts'
import { sourceCases } from './sources.ts'

export const cases: readonly Case[] = [...actionCases, ...pathCases, ...hostCases, ...headerCases, ...sourceCases, ...tokenCases]
