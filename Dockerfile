# The images of the control plane and of the agent, from what "npm ci && npm run build" makes in this folder:
#   docker build --target discovery --tag mesh/pilot-discovery .
#   docker build --target agent --tag mesh/pilot-agent .
ARG ENVOY=envoyproxy/envoy:distroless-v1.40-latest
FROM ${ENVOY} AS envoy

FROM node:24.21.0-slim AS base
ENV PATH=/opt/mesh/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY package.json /opt/mesh/package.json
COPY bin/runtime.js /opt/mesh/bin/runtime.js
COPY node_modules/piscina /opt/mesh/node_modules/piscina
COPY dist /opt/mesh/dist
WORKDIR /

FROM base AS discovery
COPY bin/pilot-discovery.js /opt/mesh/bin/pilot-discovery
USER 1337:1337
ENTRYPOINT ["pilot-discovery"]
CMD ["discovery"]

# The init container of injected pods makes redirect rules, as root: injection says so in its securityContext.
FROM base AS agent
RUN apt-get update && apt-get install --yes --no-install-recommends iptables && rm -rf /var/lib/apt/lists/*
COPY --from=envoy /usr/local/bin/envoy /usr/local/bin/envoy
COPY bin/pilot-agent.js /opt/mesh/bin/pilot-agent
USER 1337:1337
ENTRYPOINT ["pilot-agent"]
CMD ["proxy", "sidecar"]
