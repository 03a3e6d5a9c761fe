import helmet from 'helmet';

/**
 * The header fields that keep a browser from being used against its operator. Nothing that would only work over TLS
 * (Strict-Transport-Security, upgrade-insecure-requests, Cross-Origin-Opener-Policy): on this machine there is none, and elsewhere it
 * is the proxy's to say.
 */
export const protection = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // With `no-referrer`, helmet's own choice, browsers send `Origin: null` with forms.
  referrerPolicy: { policy: 'same-origin' },
  xFrameOptions: { action: 'deny' },
  crossOriginResourcePolicy: { policy: 'same-origin' },
  crossOriginEmbedderPolicy: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  strictTransportSecurity: false,
});
