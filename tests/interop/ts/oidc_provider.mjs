// An authorization server: the package oidc-provider on a free port. It prints its issuer.
import { createServer } from 'node:http';
import { load } from './packages.mjs';

const { Provider } = load('oidc-provider');

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const provider = new Provider(issuer, {
    clients: [
        { ...machine, client_id: 'robot', client_secret: 'a-secret-of-the-robot' },
        {
            ...machine,
            client_id: 'signer',
            token_endpoint_auth_method: 'private_key_jwt',
            token_endpoint_auth_signing_alg: 'ES256',
            jwks: { keys: [JSON.parse(process.env.SIGNER_JWK)] },
        },
    ],
    scopes: ['openid', 'offline_access', 'read', 'write'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: true },
        dPoP: { enabled: true, nonceSecret: Buffer.alloc(32), requireNonce: () => true },
        registration: { enabled: true },
        resourceIndicators: {
            enabled: true,
            getResourceServerInfo: (_, resource) => ({
                scope: 'read write',
                audience: resource,
                accessTokenFormat: 'jwt',
                accessTokenTTL: 600,
                jwt: { sign: { alg: 'RS256' } },
            }),
            useGrantedResource: () => true,
        },
        revocation: { enabled: true },
    },
});
server.on('request', provider.callback());
console.log(issuer);
