/* The C interface of Cairn, part training: a model's weights, a loss and an optimiser; as `cairn train` does it. Conventions are
 * those of cairn.h. A trainer is used by one thread at a time.
 */
#ifndef CAIRN_TRAINING_H_
#define CAIRN_TRAINING_H_

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CairnTrainer CairnTrainer;

/* Weights are the module's float constants. `options`: NULL, or JSON as `cairn train` has it: {"loss": "cross_entropy",
 * "loss_numbers": {"smoothing": 0.1}, "class_axis": 1, "classes": true, "optimizer": "sgd", "numbers": {"momentum": 0.9},
 * "weight_decay": 0, "clip_norm": 0, "norm_momentum": 0.9, "train": ["head.*"], "freeze": [], "labels": "labels",
 * "seed": 0}. */
CAIRN_API CairnStatus cairn_trainer_create(const CairnModule* module, const char* options,
                                           const CairnModelOptions* run_options, CairnTrainer** trainer);
CAIRN_API void cairn_trainer_free(CairnTrainer* trainer);
/* What a batch is: the model's inputs, then the labels. */
CAIRN_API size_t cairn_trainer_input_count(const CairnTrainer* trainer);
CAIRN_API CairnStatus cairn_trainer_input(const CairnTrainer* trainer, size_t index, CairnPort* port);
/* One step on a batch, and measures without one. `loss` and `accuracy` may be NULL; without classes accuracy is NaN. */
CAIRN_API CairnStatus cairn_trainer_step(CairnTrainer* trainer, const CairnTensor* batch, size_t count,
                                         double learning_rate, double* loss, double* accuracy);
CAIRN_API CairnStatus cairn_trainer_evaluate(const CairnTrainer* trainer, const CairnTensor* batch, size_t count,
                                             double* loss, double* accuracy);
/* Told at the end of an epoch: JSON with epoch, loss, accuracy, validation_loss, validation_accuracy, learning_rate, steps,
 * seconds, step_seconds. 0 ends the training. */
typedef int32_t (*CairnEpochEnds)(void* user, const char* epoch);
/* Epochs over examples: arrays as a batch has them, with the examples along the first dim. `validation`: NULL, or as many
 * arrays to measure on. `options`: NULL, or JSON: {"epochs": 1, "batch": 32, "learning_rate": 0.1, "schedule": "cosine",
 * "warmup": 0, "least_rate": 0, "gamma": 0.1, "step_epochs": 30, "shuffle": true, "keep_rest": true, "seed": 0}. */
CAIRN_API CairnStatus cairn_trainer_fit(CairnTrainer* trainer, const CairnTensor* arrays, size_t count,
                                        const CairnTensor* validation, const char* options, CairnEpochEnds epoch_ends,
                                        void* user);
/* What the next step depends on: the number of steps made, weights, statistics of batch norms and the optimiser's slots. States
 * are given to be kept and restored, all at once. */
CAIRN_API size_t cairn_trainer_state_count(const CairnTrainer* trainer);
CAIRN_API CairnStatus cairn_trainer_state(const CairnTrainer* trainer, size_t index, CairnPort* port);
CAIRN_API CairnStatus cairn_trainer_states(CairnTrainer* trainer, CairnAllocate allocate, void* user);
CAIRN_API CairnStatus cairn_trainer_restore(CairnTrainer* trainer, const CairnTensor* states, size_t count);
/* The module with the weights as they are now. */
CAIRN_API CairnStatus cairn_trainer_module(const CairnTrainer* trainer, CairnModule** module);
/* Writes it as an .om file or, where an ONNX file was opened, as that file with its new weights: by the path's ending. */
CAIRN_API CairnStatus cairn_trainer_save(const CairnTrainer* trainer, const char* path);

#ifdef __cplusplus
}
#endif

#endif
