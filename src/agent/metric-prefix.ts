/** The prefix of all metric names of the agent, those of its process and its actors included (docs/metrics.md, "Of the agent"). */
export const metricPrefix = 'mesh_agent_'
