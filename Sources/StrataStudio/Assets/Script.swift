extension Assets {
    /// The base of the page: elements, requests, addresses, live updates. Values become text nodes, never HTML.
    static let script = #"""
        'use strict';

        const shared = { store: null, schema: null, save: 0, onSave: null, lastTable: null, message: null, edit: null };
        const main = document.getElementById('main');

        // The token of the address. The storage of a page is that of its port, so that other programs cannot read it.
        const given = new URLSearchParams(location.search).get('token');
        if (given) localStorage.setItem('token', given);
        const token = given || localStorage.getItem('token') || '';

        // Makes an element. Children that are no elements become text.
        function h(tag, attributes, ...children) {
          const element = document.createElement(tag);
          for (const [name, value] of Object.entries(attributes || {})) {
            if (value === null || value === undefined || value === false) continue;
            if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
            else element.setAttribute(name, value === true ? '' : String(value));
          }
          element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
          return element;
        }

        async function request(path, body) {
          const options = { headers: { 'X-Strata-Token': token } };
          if (body !== undefined) {
            options.method = 'POST';
            options.headers['Content-Type'] = 'application/json';
            options.body = JSON.stringify(body);
          }
          let response;
          try {
            response = await fetch('/api/' + path, options);
          } catch (error) {
            throw new Error('the program strata does not answer. Start `strata studio` again');
          }
          const text = await response.text();
          let answer;
          try { answer = JSON.parse(text); } catch (error) { throw new Error(text.trim() || 'the answer is empty'); }
          if (!response.ok) throw new Error(answer.error);
          return answer;
        }

        function address(path, parameters) {
          const given = Object.entries(parameters || {}).filter(([, value]) => value !== '' && value != null);
          return path + (given.length ? '?' + given.map(([name, value]) => name + '=' + encodeURIComponent(value)).join('&') : '');
        }

        const tableAddress = (entity, parameters) => address('#/table/' + encodeURIComponent(entity), parameters);
        const collectionAddress = name => '#/collection/' + encodeURIComponent(name);
        const objectAddress = (entity, key) => '#/object/' + encodeURIComponent(entity) + '/' + key;
        const whole = number => Number(number).toLocaleString('en');

        function bytes(number) {
          for (const unit of ['B', 'kB', 'MB', 'GB']) {
            if (number < 1000) return (unit === 'B' ? number : number.toFixed(1)) + ' ' + unit;
            number /= 1000;
          }
          return number.toFixed(1) + ' TB';
        }

        // A value, with a link if it refers to an object.
        function cell(value, destination) {
          if (value.text === undefined) return h('span', { class: 'null' }, 'nil');
          if (value.key !== undefined && destination) {
            return h('a', { href: objectAddress(destination, value.key) }, value.label ? value.label : destination + ' ' + value.key);
          }
          return value.length ? value.text + '… (' + whole(value.length) + ' characters)' : value.text;
        }

        // The box around a table scrolls if the window is narrow.
        function box(label, ...children) {
          return h('div', { class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0 }, ...children);
        }

        // Columns of numbers, whose headings stand right like the numbers.
        const numbers = new Set(['process', 'save', 'age', 'keeps', 'size', 'entries']);

        function table(label, columns, rows, kind) {
          return box(label, h('table', { class: kind },
            h('thead', {}, h('tr', {}, columns.map(column => column instanceof Node ? column
              : h('th', { scope: 'col', class: numbers.has(column) ? 'number' : null }, column)))),
            h('tbody', {}, rows)));
        }

        function heading(text) {
          document.title = text + ' – Strata Studio';
          return h('h2', { tabindex: -1 }, text);
        }

        function failure(error, ...more) {
          return h('p', { class: 'error', role: 'alert' }, error.message, ...more);
        }

        // The place of a page: its path, and the parameters of its address.
        function place() {
          const [path, query] = location.hash.slice(1).split(/\?(.*)/s);
          return { parts: path.split('/').slice(1).map(decodeURIComponent), parameters: Object.fromEntries(new URLSearchParams(query || '')) };
        }

        // An edit that is left keeps no state of the store.
        function leaveEdit() {
          if (shared.edit) request('edit/cancel', { edit: shared.edit }).catch(() => {});
          shared.edit = null;
        }

        let shown = 0;

        // Shows the page of the address. A page that was asked for later wins over a slower one.
        async function show(options) {
          if (location.hash === '#main') return main.focus();
          const number = ++shown;
          const quietly = options && options.quietly;
          const { parts, parameters } = place();
          const name = parts[0] || 'schema';
          const page = pages[name];
          if (!quietly) {
            shared.onSave = null;
            leaveEdit();
          }
          if (name !== 'table') shared.lastTable = null;
          for (const link of document.querySelectorAll('nav a')) {
            const isHere = link.hash === '#/' + name || link.hash === tableAddress(parts[1] || '') && name === 'table'
              || link.hash === collectionAddress(parts[1] || '') && name === 'collection';
            if (isHere) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
          }
          let content;
          try {
            if (!page) throw new Error('there is no page ' + name + '. Choose one above');
            content = await page(parts.slice(1), parameters);
          } catch (error) {
            content = { nodes: [heading('Error'), failure(error)], onSave: null };
          }
          if (number !== shown) return;
          const message = shared.message;
          if (!quietly) shared.message = null;
          const focused = quietly ? [...main.querySelectorAll('a, button, input')].indexOf(document.activeElement) : -1;
          main.replaceChildren(...(message ? [h('p', { class: 'done', role: 'status' }, message)] : []), ...content.nodes);
          main.dataset.page = location.hash || '#/schema';
          shared.onSave = content.onSave;
          if (quietly) {
            const again = focused < 0 ? null : main.querySelectorAll('a, button, input')[focused];
            if (again) again.focus();
          } else {
            const title = main.querySelector('h2');
            if (title) title.focus({ preventScroll: true });
            scrollTo(0, 0);
          }
        }

        const again = () => show({ quietly: true });

        // The list of tables with the numbers of their objects.
        async function showStore() {
          shared.store = await request('store');
          if (!shared.schema) shared.schema = await request('schema');
          document.getElementById('file').textContent = shared.store.file;
          const list = h('ul', {}, shared.store.entities.map(entity =>
            h('li', {}, h('a', { href: tableAddress(entity.name) }, entity.name), h('span', { class: 'count' }, whole(entity.count)))));
          const collections = shared.store.collections.map(({ name, count }) =>
            h('li', {}, h('a', { href: collectionAddress(name) }, name), h('span', { class: 'count' }, whole(count))));
          document.getElementById('tables').replaceChildren(list,
            ...(collections.length ? [h('h3', {}, 'Collections'), h('ul', {}, collections)] : []));
        }

        let waiting = null;
        let changed = new Set();

        // Updates what a save has changed. Saves that follow closely are shown together.
        function saved(event) {
          const news = JSON.parse(event.data);
          const isMissed = news.entities.length === 0;
          if (isMissed && news.save <= shared.save) return;
          shared.save = Math.max(shared.save, news.save);
          for (const name of isMissed ? shared.store.entities.map(entity => entity.name) : news.entities) changed.add(name);
          if (waiting === null) waiting = setTimeout(update, 150);
        }

        async function update() {
          const names = changed;
          waiting = null;
          changed = new Set();
          try { await showStore(); } catch (error) { return; }
          showStatus();
          if (shared.onSave) shared.onSave(names);
        }

        function showStatus(text) {
          const note = shared.store && shared.store.note;
          const mode = shared.store && shared.store.isWritable ? 'writable' : 'read-only';
          document.getElementById('live').textContent = text || mode + ', save ' + shared.save + (note ? '; ' + note : '');
        }

        let events = null;

        // Hidden pages do not listen, because a browser has few connections to one program. They catch up when they are shown.
        function follow() {
          if (document.hidden || events) {
            if (document.hidden && events) { events.close(); events = null; }
            return;
          }
          events = new EventSource('/api/events?token=' + encodeURIComponent(token));
          events.addEventListener('save', saved);
          events.onopen = () => showStatus();
          events.onerror = () => showStatus('not connected: strata does not answer');
        }

        """#

    /// The beginning: after all pages are known.
    static let startScript = #"""
        addEventListener('hashchange', () => show());
        document.addEventListener('visibilitychange', follow);
        addEventListener('keydown', event => {
          if (event.key !== '/' || /INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName)) return;
          const filter = document.getElementById('filter');
          if (filter) { filter.focus(); event.preventDefault(); }
        });
        (async () => {
          // The token is kept. The address does not need to show it.
          if (location.search) history.replaceState(null, '', '/' + location.hash);
          try {
            await showStore();
            shared.save = shared.store.save;
            showStatus();
            follow();
            await show();
          } catch (error) {
            main.replaceChildren(failure(error));
          }
        })();
        """#
}
