import Foundation
import ObjectGraph
import Observation
import StoreInterface
import StoreModel

/// The examples in the documentation comments of observation, live collections and children, compiled. The architecture tests compare
/// both.
@MainActor private enum ObservationExamples {
    struct Label { var text = "" }

    static func observing(_ track: Track, _ label: inout Label, _ render: @escaping @MainActor () -> Void) {
        // Sources/ObjectGraph/Observation/ManagedObjectContext+Observation.swift
        withObservationTracking {
            label.text = track.title
        } onChange: {
            Task { @MainActor in render() }
        }
        // end
    }

    static func editing(_ container: PersistentContainer, _ track: Track) async throws {
        // Sources/ObjectGraph/Contexts/Saving/ManagedObjectContext+Parents.swift
        let editing = container.mainContext.newChild(name: "edit sheet")
        let draft = editing.object(Track.self, with: track.id)
        draft.title = "Baguette"
        try await editing.save()
        // end
    }

    static func results(
        _ context: ManagedObjectContext, _ show: (Int) -> Void, _ apply: (ResultDifference) -> Void,
        _ scheduleRedraw: @escaping @Sendable () -> Void
    ) async throws {
        // Sources/ObjectGraph/LiveResults/Results.swift
        let favorites = try Results(
            FetchRequest<Track>(where: #Predicate { $0.playCount > 100 }, sortBy: [.init(\.title)]), context: context)
        for track in favorites { print(track.title) }
        withObservationTracking {
            show(favorites.count)
        } onChange: {
            scheduleRedraw()
        }
        for await update in favorites.updates { apply(update.difference) }
        // end
    }
}
