extension Assets {
    /// The pages of the schema and of tables.
    static let tableScript = #"""
        const pages = {};

        // MARK: Schema

        const boxWidth = 190, rowHeight = 16, gapX = 70, gapY = 22, shownRows = 9;

        // Entities stand right of those to which they refer. Returns the place of each box.
        function layout(entities) {
          const byName = new Map(entities.map(entity => [entity.name, entity]));
          const level = new Map();
          function find(entity, path) {
            if (level.has(entity.name)) return level.get(entity.name);
            if (path.includes(entity.name)) return 0;
            const targets = entity.properties.filter(p => p.kind === 'to-one' && p.destination !== entity.name);
            const result = Math.max(-1, ...targets.map(p => find(byName.get(p.destination), [...path, entity.name]))) + 1;
            level.set(entity.name, result);
            return result;
          }
          const columns = [];
          for (const entity of entities) (columns[find(entity, [])] ||= []).push(entity);
          const places = new Map();
          let x = 34, height = 0;
          for (const column of columns.filter(Boolean)) {
            let y = 10;
            for (const entity of column) {
              const rows = Math.min(entity.properties.length, shownRows + 1);
              const box = { x, y, width: boxWidth, height: 30 + rows * rowHeight };
              places.set(entity.name, box);
              y += box.height + gapY;
            }
            height = Math.max(height, y);
            x += boxWidth + gapX;
          }
          return { places, width: x - gapX + 10, height };
        }

        function s(tag, attributes, ...children) {
          const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
          for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
          element.append(...children);
          return element;
        }

        const cut = (text, length) => text.length > length ? text.slice(0, length - 1) + '…' : text;

        function diagram(entities) {
          const { places, width, height } = layout(entities);
          const svg = s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Schema diagram' });
          for (const entity of entities) {
            const from = places.get(entity.name);
            entity.properties.forEach((property, index) => {
              if (property.kind === 'attribute') return;
              // A relationship with an inverse is one line, drawn from its to-one side.
              const far = entities.find(other => other.name === property.destination);
              const inverse = far.properties.find(other => other.name === property.inverse);
              if (property.kind === 'to-many' && inverse &&
                (inverse.kind === 'to-one' || far.name < entity.name || far === entity && inverse.name < property.name)) return;
              const to = places.get(property.destination);
              const y1 = from.y + 36 + Math.min(index, shownRows) * rowHeight, y2 = to.y + 14;
              const isRight = to.x > from.x, isSame = to.x === from.x;
              const x1 = isRight ? from.x + from.width : from.x, x2 = isSame || isRight ? to.x : to.x + to.width;
              const bend = isSame ? -40 : isRight ? gapX / 2 : -gapX / 2;
              const path = `M${x1} ${y1} C${x1 + bend} ${y1} ${isSame ? x2 - 40 : x2 - bend} ${y2} ${x2} ${y2}`;
              svg.append(s('path', { class: 'edge', d: path }, s('title', {}, entity.name + '.' + property.name)));
              svg.append(s('circle', { class: 'edge', cx: x2, cy: y2, r: 3 }));
            });
          }
          for (const entity of entities) {
            const { x, y, width, height } = places.get(entity.name);
            const link = s('a', { href: tableAddress(entity.name), 'aria-label': entity.name + ', ' + count(entity.name) + ' objects' });
            link.append(s('rect', { class: 'box', x, y, width, height, rx: 6 }));
            link.append(s('text', { class: 'title', x: x + 10, y: y + 19 }, cut(entity.name, 24)));
            entity.properties.slice(0, shownRows).forEach((property, index) => {
              const line = y + 40 + index * rowHeight;
              const type = property.kind === 'to-many' ? '[' + property.type + ']' : property.type + (property.isOptional ? '?' : '');
              link.append(s('text', { x: x + 10, y: line }, cut(property.name, 15), s('tspan', { class: 'type' }, '  ' + cut(type, 11))));
            });
            if (entity.properties.length > shownRows) {
              const rest = '… and ' + (entity.properties.length - shownRows) + ' more';
              link.append(s('text', { class: 'type', x: x + 10, y: y + 40 + shownRows * rowHeight }, rest));
            }
            svg.append(link);
          }
          return box('Schema diagram', svg);
        }

        function count(name) {
          const found = shared.store.entities.find(entity => entity.name === name);
          return found ? whole(found.count) : '0';
        }

        pages.schema = async () => {
          const entities = shared.schema.entities;
          const details = entities.map(entity => h('details', {},
            h('summary', {}, entity.name, h('span', { class: 'quiet' }, ' – ' + entity.properties.length + ' properties'
              + (entity.superentity ? ', inherits from ' + entity.superentity : ''))),
            table('Properties of ' + entity.name, ['property', 'type', 'kind', 'index', 'inverse'], entity.properties.map(property =>
              h('tr', {}, h('th', { scope: 'row' }, property.name),
                h('td', {}, property.type + (property.isOptional && property.kind === 'attribute' ? ' or nil' : '')),
                h('td', {}, property.isDerived ? 'derived' : property.kind), h('td', {}, property.index || ''),
                h('td', {}, property.inverse || '')))),
            entity.indexes.length ? h('p', {}, 'Indexes: ' + entity.indexes.join('; ')) : null,
            h('p', {}, h('a', { href: tableAddress(entity.name) }, 'Objects of ' + entity.name))));
          // An entity's objects are counted with those of the entity from which it inherits.
          const inheriting = new Set(entities.filter(entity => entity.superentity).map(entity => entity.name));
          const total = shared.store.entities.reduce((sum, entity) => sum + (inheriting.has(entity.name) ? 0 : entity.count), 0);
          return { nodes: [
            heading('Schema'),
            h('p', { class: 'quiet' }, entities.length + ' entities, ' + whole(total) + ' objects, ' + bytes(shared.store.bytes)
              + ', model version ' + shared.store.version),
            diagram(entities), h('h3', {}, 'Properties'), ...details] };
        };

        // MARK: Tables

        pages.table = async ([entity], parameters) => {
          const last = shared.lastTable;
          const query = { entity, filter: parameters.filter, sort: parameters.sort, offset: parameters.offset, limit: parameters.limit };
          if (last && last.entity === entity) query.view = last.view;
          const refresh = () => { shared.lastTable = null; show({ quietly: true }); };
          let page;
          try {
            page = await request(address('table', query));
          } catch (error) {
            const button = h('button', { type: 'button', onclick: refresh }, 'Refresh');
            return { nodes: [heading(entity), filterForm(entity, parameters), failure(error), h('p', {}, button)] };
          }
          shared.lastTable = { entity, view: page.view };
          const news = h('p', { class: 'newer', role: 'status', hidden: true }, 'There is a newer state. ',
            h('button', { type: 'button', onclick: refresh }, 'Refresh'));
          const first = page.total === 0 ? 0 : page.offset + 1;
          const facts = whole(page.total) + (page.total === 1 ? ' object' : ' objects') + ', ' + whole(first) + ' to '
            + whole(page.offset + page.rows.length) + ', as of save ' + page.save;
          const nodes = [
            heading(entity), filterForm(entity, parameters), news, h('p', { class: 'quiet', id: 'facts' }, facts), rows(page, parameters),
            pager(page, parameters),
            h('details', { id: 'plan' }, h('summary', {}, 'Query plan'), h('pre', {}, page.plan))];
          if (shared.store.isWritable) {
            nodes.splice(2, 0, h('p', {}, h('a', { class: 'button', href: '#/insert/' + encodeURIComponent(entity) }, 'Insert an object')));
          }
          const notice = names => { if (names.has(entity) && shared.save > page.save) news.hidden = false; };
          if (shared.save > page.save) notice(new Set([entity]));
          return { nodes, onSave: notice };
        };

        function filterForm(entity, parameters) {
          const input = h('input', { type: 'text', id: 'filter', value: parameters.filter || '', spellcheck: 'false',
            autocomplete: 'off', 'aria-describedby': 'filter-help' });
          const submit = event => {
            event.preventDefault();
            const wanted = tableAddress(entity, { filter: input.value.trim(), sort: parameters.sort });
            if (location.hash === wanted) show(); else location.hash = wanted;
          };
          const names = shared.schema.entities.find(found => found.name === entity);
          const text = names && names.properties.find(property => property.type === 'string');
          const example = text ? ', such as ' + text.name + ' contains[c] "a"' : '';
          return h('div', {},
            h('form', { class: 'filter', role: 'search', onsubmit: submit }, h('label', { for: 'filter' }, 'Filter'), input,
              h('button', { type: 'submit' }, 'Show')),
            h('p', { class: 'quiet', id: 'filter-help' }, 'A condition as in `strata query`' + example + '. The key / leads here.'));
        }

        function rows(page, parameters) {
          const columns = page.columns.map(column => {
            // A name that is not only letters, digits, underscores and dots is written in backticks.
            const name = /^[\w.]+$/.test(column.name) ? column.name : '`' + column.name + '`';
            // The store cannot sort by a relationship.
            if (column.destination) return h('th', { scope: 'col', title: column.type }, column.name);
            const isUp = parameters.sort === name, isDown = parameters.sort === '-' + name;
            const next = isUp ? '-' + name : isDown ? '' : name;
            const go = () => { location.hash = tableAddress(page.entity, { filter: parameters.filter, sort: next }); };
            return h('th', { scope: 'col', 'aria-sort': isUp ? 'ascending' : isDown ? 'descending' : 'none' },
              h('button', { type: 'button', class: 'plain', onclick: go, title: column.type },
                column.name + (isUp ? ' ↑' : isDown ? ' ↓' : '')));
          });
          const lines = page.rows.map(row => h('tr', {},
            h('th', { scope: 'row' }, h('a', { href: objectAddress(page.entity, row.key) }, row.key)),
            row.cells.map((value, index) => h('td', { class: page.columns[index].isNumber ? 'number' : null },
              cell(value, page.columns[index].destination)))));
          return table('Objects of ' + page.entity, [h('th', { scope: 'col' }, 'key'), ...columns], lines, 'rows');
        }

        function pager(page, parameters) {
          const to = (offset, text) => h('a', { class: 'button', href: tableAddress(page.entity, { ...parameters, offset }) }, text);
          const isLast = page.offset + page.rows.length >= page.total;
          return h('nav', { class: 'bar', 'aria-label': 'Parts of the table' },
            page.offset > 0 ? to(0, 'First') : null,
            page.offset > 0 ? to(Math.max(page.offset - page.limit, 0), 'Previous') : null,
            isLast ? null : to(page.offset + page.limit, 'Next'),
            isLast ? null : to(Math.floor((page.total - 1) / page.limit) * page.limit, 'Last'));
        }

        """#
}
