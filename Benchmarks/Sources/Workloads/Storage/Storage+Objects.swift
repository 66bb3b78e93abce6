import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The work through objects. After the work each store is reopened and checked.
extension Storage {
    func runStrata(_ store: StoreKind) async throws -> EngineFigures {
        var figures = EngineFigures()
        figures.costs[.importing] = try await importCost(store)
        let folder = try RunFolder()
        let model = try DatasetModel(records)
        let engine = Engine.allCases.first { $0.store == store } ?? .strata
        let work = try await folder.run(.siblings(store), model: model.model) { container in
            try await self.work(container, model: model, engine: engine, in: folder)
        } check: { container, work in
            try await Checksum.records(container, model.entities[0], ids: RowIDs(work.ids))
                .check("storage, \(engine.rawValue): records after the updates", Checksum(updated.tables[0]))
        }
        figures.fileBytes = work.figures.fileBytes
        return figures.adding(work.figures.costs)
    }

    private func importCost(_ store: StoreKind) async throws -> Double {
        let folder = try RunFolder()
        let model = try DatasetModel(imported)
        return try await folder.run(.siblings(store), importing: imported, model: model) { container, _ in
            let context = await container.importContext(name: "import")
            let importer = Importer(
                data: importedData, model: model, savePoints: .every(saveEvery), durability: durability.durability)
            let start = Clock.now()
            let result = try await importer.run(context)
            if durability == .deferred { try await container.flush() }
            return (Double(Clock.now() - start) / Double(imported.rowCount), result.ids)
        }
    }

    /// Runs the work on records. Also returns their ids.
    private func work(
        _ container: PersistentContainer, model: DatasetModel, engine: Engine, in folder: RunFolder
    ) async throws -> (figures: EngineFigures, ids: [ObjectID]) {
        var figures = EngineFigures()
        let importer = Importer(
            data: recordData, model: model, savePoints: .every(saveEvery), durability: durability.durability)
        let start = Clock.now()
        let ids = try await importer.run(container.importContext(name: "import")).ids[0]
        if durability == .deferred { try await container.flush() }
        figures.costs[.insert] = Double(Clock.now() - start) / Double(records.rowCount)
        figures.fileBytes = folder.fileBytes()
        let reader = await container.newBackgroundContext(name: "reader")
        figures.costs[.pointRead] = try await reader.perform { context throws -> Double in
            try pointReads(ids, model: model, in: context, engine: engine)
        }
        figures.costs[.scan] = try await reader.perform { context throws -> Double in try scan(context, engine) }
        figures.costs[.update] = try await update(container, model: model, ids: ids)
        return (figures, ids)
    }

    private func update(_ container: PersistentContainer, model: DatasetModel, ids: [ObjectID]) async throws -> Double {
        let updater = await container.newBackgroundContext(name: "updater")
        let start = Clock.now()
        for first in stride(from: 0, to: picks.count, by: saveEvery) {
            await updater.perform { context in
                let amount = model.entities[0].attributes[RecordData.amount]
                for index in first..<min(picks.count, first + saveEvery) {
                    context.object(with: ids[picks[index]])[attribute: amount] = .double(Double(index))
                }
            }
            try await updater.save(durability.durability)
        }
        if durability == .deferred { try await container.flush() }
        return Double(Clock.now() - start) / Double(picks.count)
    }

    private func pointReads(
        _ ids: [ObjectID], model: DatasetModel, in context: ManagedObjectContext, engine: Engine
    ) throws -> Double {
        let attribute = model.entities[0].attributes[0]
        var sum = 0
        let result = cost(picks.count) {
            for row in picks {
                if case .int(let number) = context.object(with: ids[row])[attribute: attribute] { sum += Int(number) }
            }
        }
        try check(engine, what: "point reads", found: sum, expected: pickedSum)
        return result
    }

    private func scan(_ context: ManagedObjectContext, _ engine: Engine) throws -> Double {
        let request = EntityFetchRequest(
            RecordData.entity,
            matching: .all([
                .compare("count", .greaterOrEqual, to: .int(RecordData.leastCount)),
                .compare("kind", .equal, to: .int(RecordData.kind)),
            ]))
        var count = 0
        let result = try cost(records.rowCount) { count = try context.count(request) }
        try check(engine, what: "the scan", found: count, expected: matching)
        return result
    }
}
