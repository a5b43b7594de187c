/**
 * The prefix of the names of the agent's metrics on the page that it shares with the proxy and the application, whose names may be the same
 * (docs/metrics.md, "Of the agent").
 */
export const metricPrefix = 'mesh_agent_'
