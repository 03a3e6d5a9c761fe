import helmet from 'helmet';

/**
 * Security headers of all pages. Headers that work only over TLS (Strict-Transport-Security, upgrade-insecure-requests,
 * Cross-Origin-Opener-Policy) are left out: there is no TLS on localhost, and elsewhere the TLS proxy sets them.
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
  // With `no-referrer`, the default of helmet, browsers send `Origin: null` with forms.
  referrerPolicy: { policy: 'same-origin' },
  xFrameOptions: { action: 'deny' },
  crossOriginResourcePolicy: { policy: 'same-origin' },
  crossOriginEmbedderPolicy: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  strictTransportSecurity: false,
});
