/** Unmodified SDKs, in the versions that `environments.ts` lists, through the daemon and directly with the provider. */
import { expect } from 'chai';
import { ENVIRONMENTS, NotChecked, type Program } from './environments.js';
import { COUNTED, CUT, FORBIDDEN, REFUSED, type Refused, RETRIED, SAME, UNAUTHORIZED } from './scenarios.js';
import { SdkRun } from './sdk-run.js';
import { type Sdk, SDKS } from './sdks.js';

const AT_ONCE = 3;

/** The status of a refusal that belongs to the SDK, if it is not the one of most SDKs. */
function sentTo({ goesByStatus, api }: Sdk, id: string): Pick<Refused, 'status' | 'type'> | undefined {
  if (goesByStatus) return id === 'a spent cap' ? FORBIDDEN : undefined;
  return id === "a project's wrong key" && api.types === null ? UNAUTHORIZED : undefined;
}

describe('SDKs', function () {
  this.timeout(600_000);
  const unchecked = new Set<string>();
  // In parallel: each mostly waits for its registry.
  const programs = new Map(
    Object.values(ENVIRONMENTS).map((each) => [each, each.prepare().catch((error: unknown) => error)]),
  );

  // The next ones start early: an SDK waits, between attempts and for its interpreter, more than it computes.
  const started = new Map<Sdk, Promise<unknown>>();
  const runs = new Map(SDKS.map((sdk) => [sdk, new SdkRun()]));
  const start = async (sdk: Sdk) => {
    const program = await programs.get(sdk.environment);
    if (program instanceof Error) return program;
    return runs.get(sdk)?.play(sdk, program as Program);
  };
  const startedUpTo = (index: number) => {
    for (const sdk of SDKS.slice(0, index + AT_ONCE)) {
      if (!started.has(sdk))
        started.set(
          sdk,
          start(sdk).catch((error: unknown) => error),
        );
    }
  };
  after(() => Promise.all(started.values()));

  for (const [index, sdk] of SDKS.entries()) {
    describe(sdk.title, () => {
      const performance = runs.get(sdk)!;

      before(async function () {
        startedUpTo(index);
        const problem = await started.get(sdk);
        if (problem instanceof NotChecked) {
          const line = `NOT CHECKED: SDKs of ${sdk.environment.what}: ${problem.message}`;
          if (!unchecked.has(line)) console.log(line);
          unchecked.add(line);
          this.skip();
        }
        if (problem instanceof Error) throw problem;
      });

      for (const { id, kind } of SAME) {
        if (!sdk.kinds.includes(kind)) continue;
        it(`${id}: has the same result and number of requests as directly with the provider`, () => {
          const { direct, through, atProviderItself, atDaemon, atProvider } = performance;
          expect(through.get(id), 'what its user sees').to.deep.equal(direct.get(id));
          if (id === kind) expect(direct.get(id)).to.have.property('ok');
          else expect(direct.get(id)).to.have.property('error');
          const requests = atProviderItself.get(id);
          expect(requests, 'requests').to.be.at.least(1);
          expect([atDaemon.get(id), atProvider.get(id)]).to.deep.equal([requests, requests]);
        });
      }

      for (const [id, { status, code, type, says }] of Object.entries<Refused>(REFUSED)) {
        it(`${id}: has the expected status, class, message, type and code`, () => {
          const { error } = performance.through.get(id) ?? {};
          expect(error, 'an error').to.be.an('object');
          expect(error?.message).to.include(says);
          const sent = sentTo(sdk, id) ?? { status, type };
          expect(error?.class).to.equal(typeof sdk.classes === 'string' ? sdk.classes : sdk.classes[sent.status]);
          expect(error).to.include({ status: sent.status, code });
          expect(error).to.include({ type: sdk.api.types === null ? sent.type : sdk.api.types[sent.status] });
        });

        it(`${id}: is not retried`, () => {
          expect(performance.atDaemon.get(id)).to.equal(1);
        });
      }

      it(`${CUT} is reported as such, and an incomplete stream is not taken for a complete one`, () => {
        const { error } = performance.through.get(CUT) ?? {};
        expect(error, 'an error').to.be.an('object');
        if (!sdk.missesLastEvent) expect(error?.message).to.include('token revoked');
        expect(performance.atDaemon.get(CUT), 'requests').to.equal(1);
      });

      if (sdk.retriesRegardless) {
        it(`${RETRIED}: costs requests to the daemon, but none to the provider`, () => {
          expect(performance.through.get(RETRIED)?.error?.message).to.include(REFUSED['a spent cap'].says);
          expect(performance.atDaemon.get(RETRIED), 'requests').to.be.at.least(2);
          expect(performance.atProvider.get(RETRIED), 'requests at the provider').to.equal(undefined);
        });
      }

      it("the provider gets the project's key in its own header, and no credential of the client", () => {
        expect(performance.atProvider.size, 'calls').to.be.at.least(sdk.kinds.length);
        expect(performance.wrongCredentials).to.deep.equal([]);
      });

      for (const kind of COUNTED) {
        it(`${kind}: its usage is counted`, () => {
          const line = performance.usage.find(({ model }) => model === `${kind}-test`);
          expect(line).to.include({ requests: 1, ...sdk.api.usage });
        });
      }
    });
  }
});
