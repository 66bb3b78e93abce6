extension Assets {
    /// The pages of the history, the snapshots and the file.
    static let storeScript = #"""
        pages.history = async (parts, parameters) => {
          const page = await request(address('history', { before: parameters.before, entity: parameters.entity }));
          const choose = event => { location.hash = address('#/history', { entity: event.target.value }); };
          const select = h('select', { id: 'entity', onchange: choose }, h('option', { value: '' }, 'all entities'),
            shared.schema.entities.map(({ name }) => h('option', { value: name, selected: name === parameters.entity }, name)));
          const older = page.next === undefined ? null
            : h('p', {}, h('a', { class: 'button', href: address('#/history', { entity: parameters.entity, before: page.next }) }, 'Older'));
          return {
            nodes: [heading('History'), h('p', { class: 'bar' }, h('label', { for: 'entity' }, 'Changes of'), select),
              page.saves.length ? null : h('p', { class: 'quiet' }, 'No saves.'), ...page.saves.map(save), older].filter(Boolean),
            onSave: () => { if (!parameters.before) again(); } };
        };

        pages.collection = async ([name], parameters) => {
          const page = await request(address('collection', { name, after: parameters.after }));
          const lines = page.entries.map(entry => h('tr', {}, h('th', { scope: 'row' }, entry.key), h('td', { class: 'value' }, cell(entry.value))));
          const next = page.next === undefined ? null
            : h('p', {}, h('a', { class: 'button', href: address(collectionAddress(name), { after: page.next }) }, 'Next'));
          return {
            nodes: [heading(name), h('p', { class: 'quiet' }, whole(page.total) + ' values of type ' + page.values + ' under keys of type '
              + page.keys + ', as of save ' + page.save), table('Entries of ' + name, ['key', 'value'], lines), next].filter(Boolean),
            onSave: again };
        };

        pages.save = async ([number]) => {
          const page = await request(address('history', { save: number }));
          return { nodes: [heading('Save ' + number), h('p', {}, h('a', { href: '#/history' }, 'All saves')), ...page.saves.map(save)] };
        };

        function save(save) {
          const source = [save.author && 'by ' + save.author, save.context && 'in ' + save.context, 'process ' + save.process];
          const section = h('section', { class: 'save', 'data-save': save.save },
            h('h3', {}, h('a', { href: '#/save/' + save.save }, 'Save ' + save.save), ' ',
              h('time', { datetime: save.date, class: 'quiet' }, save.date)),
            h('p', { class: 'quiet' }, source.filter(Boolean).join(', ')));
          for (const change of save.changes) section.append(changeOf(change));
          if (save.changes.length === 0) section.append(h('p', { class: 'quiet' }, 'no changes of objects'));
          const rest = save.count - save.changes.length;
          if (rest > 0) section.append(h('p', { class: 'quiet' }, 'and ' + whole(rest) + ' more objects'));
          return section;
        }

        function changeOf(change) {
          const name = change.entity + ' ' + change.key;
          const isOfModel = shared.schema.entities.some(({ name }) => name === change.entity);
          const object = change.kind === 'delete' || !isOfModel ? name : h('a', { href: objectAddress(change.entity, change.key) }, name);
          const known = change.difference;
          const names = change.properties.length ? ': ' + change.properties.join(', ') : '';
          if (!known || known.properties.length === 0) return h('p', { class: 'change' }, change.kind + ' ', object, names);
          return h('details', { class: 'change', open: change.kind === 'update' }, h('summary', {}, change.kind + ' ', object, names),
            known.isOfSeveralSaves ? h('p', { class: 'quiet' }, 'The values differ by this and earlier saves.') : null,
            changes('Values of ' + name, known.properties));
        }

        // MARK: Snapshots and file

        pages.snapshots = async () => {
          const { snapshots } = await request('snapshots');
          const lines = snapshots.map(snapshot => h('tr', {},
            h('th', { scope: 'row' }, snapshot.owners.join(', ') || (snapshot.seconds === undefined ? 'another process' : 'live results or reads')),
            h('td', { class: 'number' }, String(snapshot.process)),
            h('td', { class: 'number' }, snapshot.save === undefined ? (snapshot.isNewest ? 'newest' : 'unknown') : String(snapshot.save) + (snapshot.isNewest ? ' (newest)' : '')),
            h('td', { class: 'number' }, snapshot.seconds === undefined ? 'unknown' : whole(snapshot.seconds) + ' s'),
            h('td', { class: 'number' }, snapshot.bytes === undefined ? 'unknown' : bytes(snapshot.bytes))));
          return {
            nodes: [heading('Snapshots'),
              h('p', { class: 'quiet' }, 'The states that are in use, oldest first. An old one keeps pages of the file from reuse.'),
              table('Snapshots', ['owner', 'process', 'save', 'age', 'keeps'], lines),
              h('p', {}, h('button', { type: 'button', onclick: again }, 'Refresh'))],
            onSave: again };
        };

        pages.file = async () => {
          const map = await request('file');
          const owners = map.retainedFor.length ? ' (' + map.retainedFor.join(', ') + ')' : '';
          const facts = h('p', {}, 'The file has ' + bytes(map.bytes) + '.'
            + (map.retainedBytes ? ' Older states' + owners + ' keep ' + bytes(map.retainedBytes) + ' from reuse.' : ''));
          if (map.tables.length === 0) {
            return { nodes: [heading('File'), facts, h('p', { class: 'quiet' }, 'This SQLite library has no statistics of pages, so that the sizes of tables are not known.')], onSave: again };
          }
          const kinds = { objects: 'pages of objects', largeValues: 'large values', index: 'index', link: 'link', history: 'history', records: 'records' };
          const share = number => {
            const bar = h('div', { class: 'share' });
            bar.style.width = Math.max(0.5, 100 * number / map.bytes) + '%';
            return h('td', { style: null }, bar);
          };
          const sums = {};
          for (const part of map.tables) sums[part.content] = (sums[part.content] || 0) + part.bytes;
          const groups = [...Object.entries(sums).map(([content, number]) => [kinds[content] || content, number]),
            ...(map.freeBytes === undefined ? [['free, or kept by older states', map.otherBytes]]
              : [['free', map.freeBytes], ['kept by older states', map.retainedBytes]])].sort((a, b) => b[1] - a[1]);
          const line = (name, cells, number) => h('tr', {}, h('th', { scope: 'row' }, name), cells,
            h('td', { class: 'number' }, bytes(number)), share(number));
          return {
            nodes: [heading('File'), facts,
              table('Parts of the file', ['content', 'size', 'share'], groups.map(([name, number]) => line(name, [], number))),
              h('h3', {}, 'Tables'),
              table('Tables', ['table', 'content', 'entries', 'size', 'share'], map.tables.filter(part => part.entries > 0)
                .sort((a, b) => b.bytes - a.bytes).map(part => line(part.name,
                  [h('td', {}, kinds[part.content] || part.content), h('td', { class: 'number' }, whole(part.entries))], part.bytes)))],
            onSave: again };
        };

        """#
}
