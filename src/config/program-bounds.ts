/** How large the program of a regular expression may be that an Envoy takes. */

/** Where the bootstrap says nothing of it. */
export const stockProgramSize = 100
/** With the bootstrap that the agent makes. */
export const agentProgramSize = 1024
