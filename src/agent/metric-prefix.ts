/** What the names of all metrics of the agent begin with, those of its process and its actors too (docs/metrics.md, "Of the agent"). */
export const metricPrefix = 'mesh_agent_'
