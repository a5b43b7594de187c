/** Limits on the program size of regular expressions in Envoy. */

/** The limit when the bootstrap sets none. */
export const stockProgramSize = 100
/** The limit in the bootstrap that the agent makes. */
export const agentProgramSize = 1024
