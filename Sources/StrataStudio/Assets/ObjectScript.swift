extension Assets {
    /// The pages of objects and of their changes.
    static let objectScript = #"""
        pages.object = async ([entity, key]) => {
          const page = await request(address('object', { entity, key }));
          const title = entity + ' ' + key + (page.label ? ' – ' + page.label : '');
          const properties = table('Properties', ['property', 'value'], page.properties.map(property => h('tr', {},
            h('th', { scope: 'row', title: property.type }, property.name),
            h('td', { class: 'value' }, cell(property.cell, property.destination)))));
          const actions = shared.store.isWritable ? h('p', { class: 'bar' },
            h('a', { class: 'button', href: '#/edit/' + encodeURIComponent(entity) + '/' + key }, 'Edit'),
            h('a', { class: 'button', href: '#/delete/' + encodeURIComponent(entity) + '/' + key }, 'Delete')) : null;
          const saves = page.history.length === 0 ? h('p', { class: 'quiet' }, 'None of the last saves changed it.')
            : h('ul', {}, page.history.map(change => h('li', {}, h('a', { href: '#/save/' + change.save }, 'save ' + change.save),
              ' ' + change.kind + ', ' + change.date + (change.author ? ', by ' + change.author : ''))));
          const nodes = [
            heading(title),
            h('p', { class: 'quiet' }, h('a', { href: tableAddress(entity) }, 'All of ' + entity), ' · ' + page.id + ' · as of save ' + page.save),
            actions, properties, ...page.relationships.map(related => relationship(entity, key, related)),
            h('h3', {}, 'Changes'), saves].filter(Boolean);
          const near = new Set([entity, ...page.relationships.map(r => r.destination),
            ...page.properties.map(p => p.destination).filter(Boolean)]);
          return { nodes, onSave: names => { if ([...names].some(name => near.has(name))) again(); } };
        };

        function relationship(entity, key, related) {
          const section = h('section', {}, h('h3', {}, related.name));
          if (related.total === undefined) {
            section.append(h('p', { class: 'quiet' }, 'cannot be listed: the other end of the relationship has no name'));
            return section;
          }
          const facts = h('p', { class: 'quiet' },
            whole(related.total) + ' of ' + related.destination + (related.isOrdered ? ', in their order' : ''));
          if (related.filter && related.total > 0) {
            facts.append(' · ', h('a', { href: tableAddress(related.destination, { filter: related.filter }) }, 'as a table'));
          }
          const list = h(related.isOrdered ? 'ol' : 'ul', { class: 'flat' });
          const add = members => list.append(...members.map(member =>
            h('li', {}, h('a', { href: objectAddress(related.destination, member.key) },
              member.label || related.destination + ' ' + member.key))));
          add(related.members);
          section.append(facts, list);
          let shownMembers = related.members.length;
          const more = h('button', { type: 'button', onclick: async () => {
            try {
              const next = await request(address('related', { entity, key, name: related.name, offset: shownMembers }));
              add(next.members);
              shownMembers += next.members.length;
              more.hidden = shownMembers >= next.total || next.members.length === 0;
            } catch (error) { section.append(failure(error)); }
          } }, 'More');
          if (shownMembers < related.total) section.append(more);
          return section;
        }

        """#

    /// The forms: the changes are tried in a child context, shown, and then saved.
    static let editScript = #"""
        pages.edit = ([entity, key]) => editPage('Edit ' + entity + ' ' + key, entity, key);
        pages.insert = ([entity]) => editPage('New ' + entity, entity);

        async function editPage(title, entity, key) {
          const form = await request('edit/begin', key === undefined ? { entity } : { entity, key });
          shared.edit = form.edit;
          const inputs = form.fields.map(field => new Field(field));
          const lists = form.lists.map(list => new ListField(list));
          const result = h('div', { id: 'preview', 'aria-live': 'polite' });
          const preview = async event => {
            event.preventDefault();
            const values = {}, changed = {};
            for (const input of inputs) if (input.isChanged) values[input.field.name] = input.value;
            for (const list of lists) if (list.isChanged) changed[list.field.name] = list.value;
            await showPreview(result, { edit: form.edit, values, lists: changed }, entity, key);
          };
          const back = key === undefined ? tableAddress(entity) : objectAddress(entity, key);
          return { nodes: [heading(title), h('form', { onsubmit: preview },
            inputs.map(input => input.node), lists.map(list => list.node),
            h('p', { class: 'bar' }, h('button', { type: 'submit' }, 'Preview'), h('a', { class: 'button', href: back }, 'Cancel'))), result] };
        }

        pages.delete = async ([entity, key]) => {
          const form = await request('edit/begin', { entity, key });
          shared.edit = form.edit;
          const result = h('div', { id: 'preview', 'aria-live': 'polite' });
          await showPreview(result, { edit: form.edit, values: {}, isDeletion: true }, entity, key);
          return { nodes: [heading('Delete ' + entity + ' ' + key), result, h('p', {}, h('a', { class: 'button', href: objectAddress(entity, key) }, 'Cancel'))] };
        };

        // One property of the form.
        class Field {
          constructor(field) {
            this.field = field;
            const id = 'field-' + field.name, text = field.text === undefined ? '' : field.text;
            if (field.note) {
              this.node = h('div', { class: 'field' }, h('label', {}, field.name), h('span', { class: 'quiet' }, field.note));
              return;
            }
            if (field.type === 'bool') {
              this.input = h('select', { id }, ['true', 'false'].map(value => h('option', { value, selected: value === text }, value)));
            } else if (field.type === 'string' && (/[\r\n]/.test(text) || text.length > 80)) {
              this.input = h('textarea', { id });
              this.input.value = text;
            } else {
              this.input = h('input', { type: 'text', id, value: text, spellcheck: 'false', autocomplete: 'off' });
            }
            const forms = { data: 'data, as Base64', date: 'date, such as 2013-01-31T10:00:00Z' };
            const type = field.destination ? 'key of ' + field.destination : forms[field.type] || field.type;
            const parts = [h('label', { for: id }, field.name, h('span', { class: 'quiet' }, ' ' + type)), this.input];
            if (field.isOptional || field.text === undefined) {
              this.nil = h('input', { type: 'checkbox', id: id + '-nil' });
              this.nil.checked = field.text === undefined;
              // Writing a value means that it is not nil.
              this.input.addEventListener('input', () => { this.nil.checked = false; });
              parts.push(h('div', {}, this.nil, ' ', h('label', { for: id + '-nil' }, 'nil')));
            }
            this.node = h('div', { class: 'field' }, parts);
            this.first = this.value;
          }

          get value() { return this.nil && this.nil.checked ? null : this.withLineEnds(this.input.value); }

          // Browsers give line ends as \n. If those of the text are all alike, they stay.
          withLineEnds(value) {
            const ends = new Set((this.field.text || '').match(/\r\n|\r|\n/g) || []);
            return ends.size === 1 ? value.replace(/\n/g, [...ends][0]) : value;
          }

          get isChanged() { return !this.field.note && this.value !== this.first; }
        }

        // The objects of a to-many relationship in the form.
        class ListField {
          constructor(field) {
            this.field = field;
            this.members = [...field.members];
            this.first = this.value.join();
            const id = 'list-' + field.name;
            if (field.note) {
              this.node = h('div', { class: 'field' }, h('label', {}, field.name), h('span', { class: 'quiet' }, field.note));
              return;
            }
            this.items = h(field.isOrdered ? 'ol' : 'ul', { class: 'members', id: id + '-members' });
            this.input = h('input', { type: 'text', id, spellcheck: 'false', autocomplete: 'off', inputmode: 'numeric' });
            this.input.addEventListener('keydown', event => {
              // The key would send the form.
              if (event.key === 'Enter') { event.preventDefault(); this.add(); }
            });
            const add = h('button', { type: 'button', onclick: () => this.add() }, 'Add');
            const hint = ' ' + (field.isOrdered ? 'in their order, ' : '') + 'add by key of ' + field.destination;
            this.node = h('div', { class: 'field' }, h('label', { for: id }, field.name, h('span', { class: 'quiet' }, hint)),
              this.items, h('p', { class: 'bar' }, this.input, add));
            this.draw();
          }

          get value() { return this.members.map(member => member.key); }
          get isChanged() { return this.value.join() !== this.first; }

          add() {
            const key = this.input.value.trim();
            if (key === '') return;
            if (!this.value.includes(key)) this.members.push({ key });
            this.input.value = '';
            this.draw();
          }

          move(place, other) {
            [this.members[place], this.members[other]] = [this.members[other], this.members[place]];
            this.draw();
          }

          draw() {
            this.items.replaceChildren(...this.members.map((member, place) => {
              const name = member.label || this.field.destination + ' ' + member.key;
              const button = (text, label, onclick, disabled) =>
                h('button', { type: 'button', onclick, disabled, 'aria-label': label + ' ' + name }, text);
              const order = !this.field.isOrdered ? [] : [
                button('↑', 'Move up', () => this.move(place, place - 1), place === 0),
                button('↓', 'Move down', () => this.move(place, place + 1), place === this.members.length - 1)];
              const remove = button('Remove', 'Remove', () => { this.members.splice(place, 1); this.draw(); }, false);
              return h('li', { 'data-key': member.key }, h('span', {}, name), ' ', order, remove);
            }));
          }
        }

        async function showPreview(result, body, entity, key) {
          let preview;
          try { preview = await request('edit/preview', body); } catch (error) { return result.replaceChildren(failure(error)); }
          const nodes = [h('h3', {}, 'What would be saved')];
          if (preview.failure) nodes.push(failure({ message: preview.failure }));
          nodes.push(preview.changes.length === 0
            ? h('p', { class: 'quiet' }, body.isDeletion ? 'The object would be deleted.' : preview.isReady ? 'A new object without values.' : 'No changes.')
            : changes('Changes', preview.changes));
          if (preview.others.length) nodes.push(h('p', {}, 'The save also:'), h('ul', {}, preview.others.map(text => h('li', {}, text))));
          const save = h('button', { type: 'button', class: 'strong', id: 'save', onclick: async () => {
            save.disabled = true;
            try {
              const saved = await request('edit/save', { edit: body.edit });
              shared.edit = null;
              shared.message = body.isDeletion ? entity + ' ' + key + ' was deleted by save ' + saved.save + '.' : 'Saved as save ' + saved.save + '.';
              location.hash = body.isDeletion ? tableAddress(entity) : objectAddress(entity, saved.key);
            } catch (error) {
              result.append(failure(error, ' ', h('button', { type: 'button', onclick: () => show() }, 'Edit again')));
            }
          } }, body.isDeletion ? 'Delete' : 'Save');
          if (preview.isReady) nodes.push(h('p', {}, save));
          else if (preview.failure) nodes.push(h('p', {}, h('button', { type: 'button', onclick: () => show() }, 'Begin again')));
          result.replaceChildren(...nodes);
        }

        // The values before and after.
        function changes(label, properties) {
          return table(label, ['property', 'before', 'after'], properties.map(property => h('tr', {},
            h('th', { scope: 'row' }, property.name), h('td', { class: 'value before' }, cell(property.before)),
            h('td', { class: 'value after' }, cell(property.after)))));
        }

        """#
}
