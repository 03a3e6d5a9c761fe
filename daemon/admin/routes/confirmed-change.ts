import { type ConfirmProps, confirmPage } from '../pages/confirm.js';
import { changed, get, type PageRequest, type PageResponse, type PageView, post, statusOf } from '../page-request.js';

export type Confirmation = Pick<ConfirmProps, 'title' | 'message' | 'verb' | 'isDangerous'>;

interface ConfirmedChange {
  /** Base path of the project or token, without its ID. */
  section: 'projects' | 'tokens';
  /** The last part of the path. */
  what: string;
  asking: (request: PageRequest) => Promise<Confirmation>;
  /** @returns the query of the page after the change. */
  run: (request: PageRequest) => Promise<string>;
}

/** Routes of a change of a project or token with a confirmation page: the page, and the change. */
export function confirmedChange({ section, what, asking, run }: ConfirmedChange) {
  const ask = async (request: PageRequest, refused: string | null): Promise<PageView> => {
    const asked = await asking(request);
    const back = `${section}/${request.id}`;
    const reason = request.form.get('reason') ?? '';
    const body = confirmPage({ ...asked, to: `${back}/${what}`, back, refused, reason });
    return { title: asked.title, section, body, ...statusOf(refused) };
  };
  const path = `/${section}/:id/${what}`;
  return [
    get(path, (request) => ask(request, null)),
    post(path, (request): Promise<PageResponse> =>
      changed(
        async () => `${section}/${request.id}?${await run(request)}`,
        (refused) => ask(request, refused),
      ),
    ),
  ];
}
